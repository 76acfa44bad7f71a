//! The dense array that `numpy.save` writes: a row for each cell, in C's order.

use std::io::{self, Write};

use bytemuck::NoUninit;
use clap::ValueEnum;

use crate::fault::{Fault, Stop};
use crate::selection::Selection;

/// Values are handed on in pieces of about this many bytes.
const PIECE: usize = 1 << 20;

/// The type of the numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Dtype {
    /// 32-bit floating point, which is exact up to 16,777,216
    #[default]
    F32,
    /// 16-bit integers, up to 65,535
    U16,
    /// 32-bit integers, for every count
    I32,
}

/// Writes the file. Returns the number of nonzeros.
pub fn write(
    out: impl Write,
    selection: &Selection<'_>,
    dtype: Dtype,
    failed: impl Fn(io::Error) -> Stop,
) -> Result<u64, Stop> {
    match dtype {
        Dtype::F32 => dense(out, selection, ("<f4", "f32"), |n| (n <= 1 << 24).then_some(n as f32), failed),
        Dtype::U16 => dense(out, selection, ("<u2", "u16"), |n| u16::try_from(n).ok(), failed),
        Dtype::I32 => dense(out, selection, ("<i4", "i32"), Some, failed),
    }
}

fn dense<T: NoUninit + Default>(
    mut out: impl Write,
    selection: &Selection<'_>,
    (dtype, name): (&str, &str),
    exact: impl Fn(i32) -> Option<T>,
    failed: impl Fn(io::Error) -> Stop,
) -> Result<u64, Stop> {
    let (n_cells, n_genes) = (selection.n_cells(), selection.n_genes());
    let width = usize::try_from(n_genes).unwrap_or(usize::MAX);
    let bytes = u64::from(n_genes) * size_of::<T>() as u64;
    let limit = selection.decoder.limits().max_output_bytes;
    if bytes > limit {
        let message = format!("a dense row needs {bytes} bytes, the limit is {limit}: choose --genes");
        return Err(Fault::new("limit_exceeded", selection.source.path(), message).into());
    }
    out.write_all(&header(dtype, &format!("{n_cells}, {n_genes}"))).map_err(&failed)?;
    // As many whole rows as make a piece.
    let at_once = (PIECE / (width.max(1) * size_of::<T>())).max(1);
    let mut dense = vec![T::default(); at_once * width];
    let mut nnz = 0;
    selection.each(|piece, rows| {
        let rows: Vec<_> = rows.each().collect();
        for (part, some) in rows.chunks(at_once).enumerate() {
            let dense = &mut dense[..some.len() * width];
            dense.fill(T::default());
            for (n, (genes, counts)) in some.iter().enumerate() {
                nnz += genes.len() as u64;
                for (&gene, &count) in genes.iter().zip(*counts) {
                    let Some(value) = exact(count) else {
                        let cell = piece.cells().nth(part * at_once + n).unwrap_or(0);
                        let message = format!(
                            "cell {cell} has the count {count}, which {name} does not hold exactly: take --dtype i32"
                        );
                        return Err(Fault::new("out_of_range", selection.source.path(), message).into());
                    };
                    dense[n * width + usize::try_from(gene).unwrap_or(usize::MAX)] = value;
                }
            }
            out.write_all(bytemuck::cast_slice(dense)).map_err(&failed)?;
        }
        Ok(())
    })?;
    Ok(nnz)
}

/// What stands before the values of an array: `shape` is what Python has between the parentheses.
pub fn header(dtype: &str, shape: &str) -> Vec<u8> {
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({shape}), }}").into_bytes();
    // Magic, version and length take ten bytes; the values start at a multiple of 64, behind a line break.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.resize(padded - 1, b' ');
    header.push(b'\n');
    let len = u16::try_from(header.len()).expect("a short header");
    [b"\x93NUMPY\x01\x00", &len.to_le_bytes()[..], &header].concat()
}
