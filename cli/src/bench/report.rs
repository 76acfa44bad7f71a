//! The figures of a run, as JSON and as tables.

use std::fmt::Write;

use serde_json::{Value, json};

pub struct Report {
    pub cpu: String,
    pub threads: usize,
    pub kernels: Vec<&'static str>,
    pub tile: TileFacts,
    pub bounds: Bounds,
    pub results: Vec<DecodeRow>,
    pub kernel_ops: Vec<OpRow>,
    pub profiles: Vec<ProfileRow>,
}

pub struct TileFacts {
    pub cells: usize,
    pub genes: u32,
    pub nnz: u64,
    pub bytes: u64,
    pub profile: String,
    pub chunks: u32,
}

/// What a decode cannot beat, or should.
pub struct Bounds {
    pub zstd_ns_per_nnz: f64,
    pub memcpy_ns_per_nnz: f64,
    pub naive_ns_per_nnz: f64,
    pub naive_x_zstd: f64,
}

pub struct DecodeRow {
    pub kernel: &'static str,
    pub threads: usize,
    pub buffers: &'static str,
    pub ns_per_nnz: f64,
    pub ns_per_nnz_min: f64,
    pub x_zstd: f64,
    pub cells_per_s: f64,
}

pub struct OpRow {
    pub op: &'static str,
    pub kernel: &'static str,
    pub ns_per_value: f64,
    pub x_naive: f64,
}

pub struct ProfileRow {
    pub profile: String,
    pub bytes: u64,
    pub x_bytes: f64,
    pub zstd_ns_per_nnz: f64,
    pub x_zstd_time: f64,
    pub decode_ns_per_nnz: f64,
    pub x_decode: f64,
    pub encode_s: f64,
    pub x_encode: f64,
}

impl Report {
    pub fn to_json(&self) -> Value {
        json!({
            "cpu": self.cpu,
            "kernels": self.kernels,
            "tile": {
                "cells": self.tile.cells,
                "genes": self.tile.genes,
                "nnz": self.tile.nnz,
                "bytes": self.tile.bytes,
                "profile": self.tile.profile,
                "chunks": self.tile.chunks,
            },
            "bounds": {
                "zstd_ns_per_nnz": self.bounds.zstd_ns_per_nnz,
                "memcpy_ns_per_nnz": self.bounds.memcpy_ns_per_nnz,
                "naive_ns_per_nnz": self.bounds.naive_ns_per_nnz,
            },
            "results": self.results.iter().map(|row| json!({
                "kernel": row.kernel,
                "threads": row.threads,
                "buffers": row.buffers,
                "ns_per_nnz": row.ns_per_nnz,
                "ns_per_nnz_min": row.ns_per_nnz_min,
                "x_zstd": row.x_zstd,
                "cells_per_s": row.cells_per_s,
            })).collect::<Vec<_>>(),
            "kernel_ops": self.kernel_ops.iter().map(|row| json!({
                "op": row.op,
                "kernel": row.kernel,
                "ns_per_value": row.ns_per_value,
                "x_naive": row.x_naive,
            })).collect::<Vec<_>>(),
            "profiles": self.profiles.iter().map(|row| json!({
                "profile": row.profile,
                "bytes": row.bytes,
                "x_bytes": row.x_bytes,
                "zstd_ns_per_nnz": row.zstd_ns_per_nnz,
                "x_zstd_time": row.x_zstd_time,
                "decode_ns_per_nnz": row.decode_ns_per_nnz,
                "x_decode": row.x_decode,
                "encode_s": row.encode_s,
                "x_encode": row.x_encode,
            })).collect::<Vec<_>>(),
        })
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let tile = &self.tile;
        _ = writeln!(text, "CPU      {} ({} threads), tilekern {}", self.cpu, self.threads, env!("CARGO_PKG_VERSION"));
        _ = writeln!(
            text,
            "tile     {} cells x {} genes, {} nonzeros, {} bytes ({:.3} per nonzero), {} chunks, profile {}",
            tile.cells,
            tile.genes,
            tile.nnz,
            tile.bytes,
            tile.bytes as f64 / tile.nnz.max(1) as f64,
            tile.chunks,
            tile.profile
        );
        text.push_str("\nDecode to CSR (indptr i64, indices i32, counts i32)   ns per nonzero, median\n");
        _ = writeln!(text, "  {:<10} {:>7}  {:<12} {:>9} {:>9} {:>12}", "kernel", "threads", "buffers", "ns", "x libzstd", "M cells/s");
        let bound = |text: &mut String, name: &str, ns: f64, x: f64| {
            _ = writeln!(text, "  {name:<10} {:>7}  {:<12} {ns:>9.3} {x:>9.2}", 1, "reused-huge");
        };
        bound(&mut text, "libzstd", self.bounds.zstd_ns_per_nnz, 1.0);
        bound(&mut text, "memcpy", self.bounds.memcpy_ns_per_nnz, self.bounds.memcpy_ns_per_nnz / self.bounds.zstd_ns_per_nnz);
        bound(&mut text, "naive", self.bounds.naive_ns_per_nnz, self.bounds.naive_x_zstd);
        for row in &self.results {
            _ = writeln!(
                text,
                "  {:<10} {:>7}  {:<12} {:>9.3} {:>9.2} {:>12.3}",
                row.kernel,
                row.threads,
                row.buffers,
                row.ns_per_nnz,
                row.x_zstd,
                row.cells_per_s / 1e6
            );
        }
        text.push_str(
            "  libzstd: the tile's frames alone; memcpy: 8 bytes per nonzero; naive: the format's text as plain loops.\n  \
             One thread is timed by its CPU time, several by the wall.\n",
        );
        text.push_str("\nKernels on cells that stay in the cache   ns per value, best; speed against the naive loop\n");
        _ = writeln!(text, "  {:<12} {:<10} {:>9} {:>9}", "operation", "kernel", "ns", "x naive");
        for row in &self.kernel_ops {
            _ = writeln!(text, "  {:<12} {:<10} {:>9.4} {:>9.1}", row.op, row.kernel, row.ns_per_value, row.x_naive);
        }
        if !self.profiles.is_empty() {
            text.push_str("\nWriter profiles on the same counts, one thread; ratios to plain:19\n");
            _ = writeln!(
                text,
                "  {:<10} {:>12} {:>8} {:>10} {:>8} {:>10} {:>10} {:>9} {:>8}",
                "profile", "bytes", "x bytes", "zstd ns", "x time", "decode ns", "x zstd 19", "encode s", "x encode"
            );
            for row in &self.profiles {
                _ = writeln!(
                    text,
                    "  {:<10} {:>12} {:>8.3} {:>10.3} {:>8.2} {:>10.3} {:>10.2} {:>9.1} {:>8.2}",
                    row.profile,
                    row.bytes,
                    row.x_bytes,
                    row.zstd_ns_per_nnz,
                    row.x_zstd_time,
                    row.decode_ns_per_nnz,
                    row.x_decode,
                    row.encode_s,
                    row.x_encode
                );
            }
        }
        text
    }
}

/// The CPU as it names itself.
pub fn cpu_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), str::to_owned)
}
