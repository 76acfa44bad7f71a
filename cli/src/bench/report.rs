//! The figures of a run, as JSON and as tables.

use serde::Serialize;

use crate::table::{Align, Table};
use crate::text::counted;

#[derive(Serialize)]
pub struct Report {
    pub cpu: String,
    /// CPUs that this process may use.
    pub threads: usize,
    pub kernels: Vec<&'static str>,
    pub tile: TileFacts,
    pub bounds: Bounds,
    pub results: Vec<DecodeRow>,
    pub kernel_ops: Vec<OpRow>,
    pub profiles: Vec<ProfileRow>,
}

#[derive(Serialize)]
pub struct TileFacts {
    pub cells: usize,
    pub genes: u32,
    pub nnz: u64,
    pub bytes: u64,
    pub profile: String,
    pub chunks: u32,
}

/// What a decode cannot beat, or should. One thread, reused memory on huge pages.
#[derive(Serialize)]
pub struct Bounds {
    pub zstd_ns_per_nnz: f64,
    pub memcpy_ns_per_nnz: f64,
    pub naive_ns_per_nnz: f64,
    pub naive_x_zstd: f64,
}

#[derive(Serialize)]
pub struct DecodeRow {
    pub kernel: &'static str,
    pub threads: usize,
    pub buffers: &'static str,
    pub ns_per_nnz: f64,
    pub ns_per_nnz_min: f64,
    pub x_zstd: f64,
    /// Against one thread of the same kernel and buffers, by the wall.
    pub speedup: f64,
    pub cells_per_s: f64,
}

#[derive(Serialize)]
pub struct OpRow {
    pub op: &'static str,
    pub kernel: &'static str,
    pub ns_per_value: f64,
    pub x_naive: f64,
}

#[derive(Serialize)]
pub struct ProfileRow {
    pub profile: String,
    pub bytes: u64,
    pub x_bytes: f64,
    pub zstd_ns_per_nnz: f64,
    pub x_zstd_time: f64,
    pub decode_ns_per_nnz: f64,
    /// A whole decode against libzstd alone on the plain level-19 frames.
    pub x_decode: f64,
    pub encode_s: f64,
    pub x_encode: f64,
}

impl Report {
    /// The report for people.
    pub fn lines(&self) -> Vec<String> {
        let tile = &self.tile;
        let mut lines = vec![
            format!("CPU   {} ({} threads), tilekern {}", self.cpu, self.threads, env!("CARGO_PKG_VERSION")),
            format!(
                "tile  {} x {}, {}, {} ({:.3} per nonzero), {}, profile {}",
                counted(tile.cells, "cell"),
                counted(tile.genes, "gene"),
                counted(tile.nnz, "nonzero"),
                counted(tile.bytes, "byte"),
                tile.bytes as f64 / tile.nnz.max(1) as f64,
                counted(tile.chunks, "chunk"),
                tile.profile
            ),
            String::new(),
        ];
        lines.extend(self.decode_lines());
        lines.push(String::new());
        lines.extend(self.op_lines());
        if !self.profiles.is_empty() {
            lines.push(String::new());
            lines.extend(self.profile_lines());
        }
        lines
    }

    /// Whole decodes beside their bounds.
    pub fn decode_lines(&self) -> Vec<String> {
        let mut table = Table::new([
            ("decode to CSR, one thread", Align::Left),
            ("buffers", Align::Left),
            ("ns/nonzero", Align::Right),
            ("x libzstd", Align::Right),
            ("M cells/s", Align::Right),
        ]);
        let zstd = self.bounds.zstd_ns_per_nnz;
        for (name, ns, ratio) in [
            ("libzstd alone", zstd, 1.0),
            ("memcpy of the output", self.bounds.memcpy_ns_per_nnz, self.bounds.memcpy_ns_per_nnz / zstd),
            ("naive loops", self.bounds.naive_ns_per_nnz, self.bounds.naive_x_zstd),
        ] {
            let [ns, ratio] = [format!("{ns:.3}"), format!("{ratio:.2}")];
            table.row([name.into(), "reused-huge".into(), ns, ratio, String::new()]);
        }
        let (one, many): (Vec<_>, Vec<_>) = self.results.iter().partition(|row| row.threads == 1);
        for row in one {
            table.row([
                row.kernel.into(),
                row.buffers.into(),
                format!("{:.3}", row.ns_per_nnz),
                format!("{:.2}", row.x_zstd),
                format!("{:.3}", row.cells_per_s / 1e6),
            ]);
        }
        let mut lines: Vec<String> = table.lines().collect();
        lines.push("Medians of CPU time.".to_owned());
        if many.is_empty() {
            return lines;
        }
        let mut table = Table::new([
            ("decode to CSR, all threads", Align::Left),
            ("threads", Align::Right),
            ("buffers", Align::Left),
            ("ns/nonzero", Align::Right),
            ("x one thread", Align::Right),
            ("M cells/s", Align::Right),
        ]);
        for row in many {
            table.row([
                row.kernel.into(),
                row.threads.to_string(),
                row.buffers.into(),
                format!("{:.3}", row.ns_per_nnz),
                format!("{:.2}", row.speedup),
                format!("{:.3}", row.cells_per_s / 1e6),
            ]);
        }
        lines.push(String::new());
        lines.extend(table.lines());
        lines.push("Medians of time on the wall, which other work on the machine disturbs.".to_owned());
        lines
    }

    /// Single kernels beside the naive loop.
    pub fn op_lines(&self) -> Vec<String> {
        let mut table = Table::new([
            ("kernel on cells in cache", Align::Left),
            ("level", Align::Left),
            ("ns/value", Align::Right),
            ("x naive", Align::Right),
        ]);
        for row in &self.kernel_ops {
            table.row([
                row.op.into(),
                row.kernel.into(),
                format!("{:.4}", row.ns_per_value),
                format!("{:.1}", row.x_naive),
            ]);
        }
        table.lines().collect()
    }

    fn profile_lines(&self) -> Vec<String> {
        let mut table = Table::new([
            ("writer profile", Align::Left),
            ("bytes", Align::Right),
            ("x bytes", Align::Right),
            ("libzstd ns", Align::Right),
            ("x time", Align::Right),
            ("decode ns", Align::Right),
            ("x libzstd of plain:19", Align::Right),
            ("encode s", Align::Right),
            ("x encode", Align::Right),
        ]);
        for row in &self.profiles {
            table.row([
                row.profile.clone(),
                row.bytes.to_string(),
                format!("{:.3}", row.x_bytes),
                format!("{:.3}", row.zstd_ns_per_nnz),
                format!("{:.2}", row.x_zstd_time),
                format!("{:.3}", row.decode_ns_per_nnz),
                format!("{:.2}", row.x_decode),
                format!("{:.1}", row.encode_s),
                format!("{:.2}", row.x_encode),
            ]);
        }
        let mut lines: Vec<String> = table.lines().collect();
        lines.push("The same counts on one thread; ratios to plain:19.".to_owned());
        lines
    }
}

/// The CPU as it names itself.
pub fn cpu_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), str::to_owned)
}
