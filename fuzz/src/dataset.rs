//! Datasets in.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use arbitrary::{Result, Unstructured};
use serde_json::Value;
use tilekern::deltacel::dataset::{Dataset, Manifest};
use tilekern::deltacel::{Chunks, Count, Csr, CsrView, Decoder, Encoder, ExceptionPolicy, Profile};
use tilekern::{Error, ErrorKind, Object, Part, Source};

use super::seeds::noise;

/// Any bytes as a manifest: an error with a place in it, or counts that agree with each other and with another reader of
/// JSON, and that come back from the text that is written of them.
pub fn manifest(data: &[u8]) {
    let faults = Manifest::faults(data);
    for fault in faults.iter().filter(|fault| fault.kind() != ErrorKind::Missing) {
        assert!(fault.offset().is_some_and(|at| at <= data.len() as u64), "no place in the text: {fault}");
    }
    let manifest = match Manifest::from_json(data) {
        Ok(manifest) => manifest,
        Err(error) => {
            let first = faults.first().map(Error::to_string);
            assert_eq!(first, Some(error.to_string()));
            return;
        }
    };
    assert!(faults.is_empty(), "read, though {faults:?}");
    let json: Value = serde_json::from_slice(data).expect("JSON");
    assert_eq!(json["n_cells"].as_u64(), Some(manifest.n_cells()));
    assert_eq!(json["n_genes"].as_u64(), Some(manifest.n_genes().into()));
    let list = |key: &str| json[key].as_array().expect("a list").iter().map(Value::as_u64).collect::<Option<Vec<_>>>();
    let cells: Vec<u64> = (0..manifest.n_tiles()).map(|tile| manifest.tile_cells(tile)).collect();
    assert_eq!(list("tile_cells").as_ref(), Some(&cells));
    assert_eq!(list("tile_nnz").as_deref(), Some(manifest.tile_nnz()));
    assert_eq!(list("tile_bytes").as_deref(), Some(manifest.tile_bytes()));
    assert_eq!(cells.iter().sum::<u64>(), manifest.n_cells());
    let mut start = 0;
    for (tile, limit) in (0..).zip(manifest.tile_limits()) {
        let size = limit - start;
        assert_eq!((manifest.locate(start), manifest.locate(limit - 1)), (Some((tile, 0)), Some((tile, size - 1))));
        start = limit;
    }
    assert_eq!(manifest.locate(start), None);
    let text = manifest.to_json();
    let again = Manifest::from_json(text.as_bytes()).expect("a text of ours");
    assert_eq!(again.to_json(), text);
}

/// A dataset in memory, and the model of it.
#[derive(Clone)]
struct Store {
    manifest: String,
    tiles: Vec<Arc<[u8]>>,
    /// The bytes of both side files.
    side: Arc<[u8]>,
    /// Whether objects say that they lie in memory.
    mapped: bool,
}

impl Source for Store {
    fn open(&self, name: &str) -> std::result::Result<Box<dyn Object>, Error> {
        let missing = || Error::new(ErrorKind::Io(std::io::ErrorKind::NotFound), Part::Object);
        let bytes = match name {
            "manifest.json" => self.manifest.as_bytes().into(),
            "gene_order.npy" | "var_names.txt" => self.side.clone(),
            _ => {
                let number = name.strip_prefix("tiles/tile_").and_then(|name| name.strip_suffix(".dct"));
                let tile = number.and_then(|number| number.parse::<usize>().ok()).and_then(|n| self.tiles.get(n));
                tile.ok_or_else(missing)?.clone()
            }
        };
        Ok(Box::new(Memory { bytes, mapped: self.mapped }))
    }

    fn path(&self, name: &str) -> PathBuf {
        name.into()
    }
}

struct Memory {
    bytes: Arc<[u8]>,
    mapped: bool,
}

impl Object for Memory {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> std::result::Result<(), Error> {
        // A reader never asks for more than there is.
        let from = usize::try_from(offset).expect("an offset in memory");
        out.copy_from_slice(&self.bytes[from..from + out.len()]);
        Ok(())
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.mapped.then_some(&*self.bytes)
    }
}

/// Any bytes as `gene_order.npy` and `var_names.txt` of a dataset of five genes: an error, or five of each.
pub fn side_files(data: &[u8]) {
    let manifest = text(5, 4, &[], &[]).replace(": false", ": true").replace("\"has_obs\": true", "\"has_obs\": false");
    let store = Store { manifest, tiles: Vec::new(), side: data.into(), mapped: false };
    let dataset = Dataset::builder().open_source(Box::new(store)).expect("a sound manifest");
    if let Ok(order) = dataset.gene_order() {
        let order = order.expect("an order");
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert!(sorted.len() == 5 && sorted[0] >= 0, "{order:?}");
        let bytes: Vec<u8> = order.iter().flat_map(|gene| gene.to_le_bytes()).collect();
        assert!(data.ends_with(&bytes));
    }
    if let Ok(names) = dataset.var_names() {
        let names: Vec<&str> = names.expect("names").iter().collect();
        assert_eq!(names.len(), 5);
        let text = names.join("\n");
        assert_eq!(data.strip_suffix(b"\n").filter(|rest| *rest == text.as_bytes()).unwrap_or(data), text.as_bytes());
    }
}

/// The manifest of such tiles.
fn text(n_genes: u32, tile_size: usize, cells: &[Vec<Vec<(i32, i32)>>], tiles: &[Arc<[u8]>]) -> String {
    let n_cells: usize = cells.iter().map(Vec::len).sum();
    let lens: Vec<usize> = cells.iter().map(Vec::len).collect();
    let nnz: Vec<usize> = cells.iter().map(|cells| cells.iter().map(Vec::len).sum()).collect();
    let bytes: Vec<usize> = tiles.iter().map(|tile| tile.len()).collect();
    format!(
        "{{\"format\": \"deltacells-dataset\", \"version\": 2, \"n_cells\": {n_cells}, \"n_genes\": {n_genes}, \
         \"tile_size\": {tile_size}, \"tile_cells\": {lens:?}, \"tile_nnz\": {nnz:?}, \"tile_bytes\": {bytes:?}, \
         \"has_gene_order\": false, \"has_var_names\": false, \"has_var_table\": false, \"has_obs\": false}}"
    )
}

const N_GENES: u32 = 200_000;
const TILE_SIZE: usize = 8;

/// Gene and count of each nonzero, cell by cell.
type Cells = Vec<Vec<(i32, i32)>>;

/// A dataset of 21 cells in three tiles, and those cells.
static SOUND: LazyLock<(Store, Cells)> = LazyLock::new(|| {
    let cells: Vec<Vec<(i32, i32)>> = (0..21u8)
        .map(|cell| {
            let mut gene = -1;
            noise(cell.into(), 9 * usize::from(cell % 5))
                .iter()
                .map(|&byte| {
                    gene += if byte < 4 { 66_000 } else { 1 + i32::from(byte) };
                    (gene % 199_000, if byte > 250 { 1 << (byte - 225) } else { 1 + i32::from(byte % 3) })
                })
                .collect()
        })
        .map(|mut cell: Vec<(i32, i32)>| {
            cell.sort_unstable();
            cell.dedup_by_key(|nonzero| nonzero.0);
            cell
        })
        .collect();
    let builder = Encoder::builder().profile(Profile::Plain(1)).chunks(Chunks::Count(3)).threads(1);
    let mut encoder = builder.exceptions(ExceptionPolicy::Any).build().expect("sound settings");
    let parts: Vec<Vec<Vec<(i32, i32)>>> = cells.chunks(TILE_SIZE).map(<[_]>::to_vec).collect();
    let tiles: Vec<Arc<[u8]>> = parts
        .iter()
        .map(|cells| {
            let mut indptr = vec![0];
            indptr.extend(cells.iter().scan(0, |sum, cell| {
                *sum += cell.len() as i64;
                Some(*sum)
            }));
            let (indices, values): (Vec<i32>, Vec<i32>) = cells.iter().flatten().copied().unzip();
            let matrix = CsrView { n_genes: N_GENES, indptr: &indptr, indices: &indices, values: &values };
            let mut tile = Vec::new();
            encoder.encode(&matrix, &mut tile).expect("a sound matrix");
            tile.into()
        })
        .collect();
    let manifest = text(N_GENES, TILE_SIZE, &parts, &tiles);
    (Store { manifest, tiles, side: Arc::new([]), mapped: false }, cells)
});

/// Any selection of cells, of a dataset that is sound or has a byte changed: the rows of the model or an error, the same
/// on one thread and on three.
pub fn cell_selection(data: &[u8]) {
    _ = select(&mut Unstructured::new(data));
}

fn select(u: &mut Unstructured<'_>) -> Result<()> {
    let (sound, cells) = &*SOUND;
    let mut store = Store { mapped: u.arbitrary()?, ..sound.clone() };
    let check_crc: bool = u.arbitrary()?;
    let damaged = u.ratio(1, 2)?;
    if damaged {
        let tile = u.choose_index(store.tiles.len())?;
        let mut bytes = store.tiles[tile].to_vec();
        let at = u.choose_index(bytes.len())?;
        bytes[at] ^= u.int_in_range(1..=255)?;
        if !check_crc && u.arbitrary()? {
            bytes.truncate(u.int_in_range(0..=bytes.len())?);
        }
        store.tiles[tile] = bytes.into();
    }
    let n_cells = cells.len() as u64;
    let range = u.int_in_range(0..=n_cells)?..u.int_in_range(0..=n_cells + 1)?;
    let kind = u.int_in_range(0..=2)?;
    let mut wanted = Vec::new();
    while !u.is_empty() && wanted.len() < 100 {
        wanted.push(if u.ratio(1, 255)? { u.arbitrary()? } else { u.int_in_range(0..=n_cells - 1)? });
    }
    let dataset = Dataset::builder().check_crc(check_crc).open_source(Box::new(store)).expect("a sound manifest");
    // Damage that no check sees changes values, so only a checked tile must be that of the model.
    let model = (!damaged || check_crc).then_some(&cells[..]);
    match kind {
        0 => selected::<i32>(&dataset, &wanted, range, model, damaged),
        1 => selected::<f32>(&dataset, &wanted, range, model, damaged),
        _ => selected::<u16>(&dataset, &wanted, range, model, damaged),
    }
    Ok(())
}

/// The gene and the count of a nonzero; the count as the type prints it, and `None` where the type does not hold it.
fn shown<T: Count>(&(gene, count): &(i32, i32)) -> Option<(i32, String)> {
    let text = match T::NAME {
        "f32" => format!("{:?}", count as f32),
        "u16" => u16::try_from(count).ok()?.to_string(),
        _ => count.to_string(),
    };
    Some((gene, text))
}

fn selected<T: Count>(
    dataset: &Dataset,
    wanted: &[u64],
    range: std::ops::Range<u64>,
    model: Option<&[Vec<(i32, i32)>]>,
    damaged: bool,
) {
    thread_local!(static DECODERS: [Decoder; 2] =
        [1, 3].map(|threads| Decoder::builder().threads(threads).build().expect("threads")));
    let in_range: Option<Vec<u64>> = (range.start <= range.end).then(|| range.clone().collect());
    for (list, cells) in [(true, Some(wanted)), (false, in_range.as_deref())] {
        let results = DECODERS.with(|decoders| {
            decoders.each_ref().map(|decoder| {
                let mut csr = Csr::<T>::new();
                let result = match list {
                    true => dataset.rows(wanted, decoder, &mut csr),
                    false => dataset.range(range.clone(), decoder, &mut csr),
                };
                let result = result.map_err(|error| error.to_string())?;
                Ok::<_, String>((result, csr))
            })
        });
        assert_eq!(results[0], results[1], "one thread and three");
        let Some(model) = model else { continue };
        let rows = cells.and_then(|cells| {
            cells.iter().map(|&cell| model.get(usize::try_from(cell).ok()?)).collect::<Option<Vec<_>>>()
        });
        let expected = rows.and_then(|rows| rows.into_iter().flatten().map(shown::<T>).collect::<Option<Vec<_>>>());
        match (&results[0], expected) {
            (Ok((decoded, csr)), Some(expected)) => {
                let found = csr.indices().iter().zip(csr.values());
                let found: Vec<_> = found.map(|(&gene, count)| (gene, format!("{count:?}"))).collect();
                assert_eq!(found, expected);
                assert_eq!((decoded.cells, csr.n_cells()), (cells.map_or(0, <[_]>::len), decoded.cells));
            }
            (Err(_), None) => {}
            (Err(_), Some(_)) if damaged => {}
            (result, expected) => panic!("{result:?}, expected {expected:?}"),
        }
    }
}

/// The seeds of a target of this file.
pub(super) fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "manifest" => {
            let all = "{\"n_chunks\": 3, \"zstd_level\": 19, \"metadata\": {\"a\": [1, \"b\"]}, \"other\": null, ";
            let obs = "\"has_obs\": true, \"obs_tiles_per_file\": 2, \"obs_shard_bytes\": [10, 20], \
                       \"obs_fingerprint\": \"0123456789abcdef01234567\", \"obs_shard_sha256\": [";
            let digests = format!("{obs}\"{0}\", \"{0}\"]", "5a".repeat(32));
            let sound = &SOUND.0.manifest;
            let with_obs = sound.replace("\"has_obs\": false", &digests);
            [text(1, 1, &[], &[]), sound.clone(), sound.replacen('{', all, 1), with_obs].map(String::into_bytes).into()
        }
        "side_files" => {
            let mut order = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
            order.extend(format!("{:117}\n", "{'descr': '<i4', 'fortran_order': False, 'shape': (5,), }").bytes());
            order.extend([4i32, 0, 1, 3, 900].iter().flat_map(|gene| gene.to_le_bytes()));
            vec![order, b"a\nb\n\nb\n\xce\xb1\n".to_vec(), b"1\n2\n3\n4\n5".to_vec()]
        }
        _ => (0..64).map(|i| noise(i, 100)).collect(),
    }
}
