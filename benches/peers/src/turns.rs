//! Cases that take turns, and the rows that they give.

use std::time::Duration;

use serde_json::{Value, json};

/// One way to decode the data of a case.
pub struct Entry<'a> {
    pub case: &'static str,
    /// A kernel level of tilekern, or a crate and its version.
    pub decoder: String,
    /// Bytes that it reads.
    pub bytes: usize,
    pub run: Box<dyn FnMut() + 'a>,
}

/// A result: values per second, and against tilekern's best of the same case.
pub struct Row {
    case: &'static str,
    decoder: String,
    bytes: usize,
    m_values_per_s: f64,
    x_tilekern: f64,
}

impl Row {
    pub fn to_json(&self) -> Value {
        json!({
            "case": self.case,
            "decoder": self.decoder,
            "bytes": self.bytes,
            "m_values_per_s": self.m_values_per_s,
            "x_tilekern": self.x_tilekern,
        })
    }
}

/// Times entries of one case, each once a round. The first is what the others are compared with.
pub fn compare(values: usize, rounds: usize, entries: &mut [Entry<'_>]) -> Vec<Row> {
    let mut runs: Vec<&mut dyn FnMut()> = entries.iter_mut().map(|entry| &mut *entry.run as _).collect();
    let times = take_turns(rounds, &mut runs);
    entries
        .iter()
        .zip(&times)
        .map(|(entry, these)| Row {
            case: entry.case,
            decoder: entry.decoder.clone(),
            bytes: entry.bytes,
            x_tilekern: ratio(these, &times[0]),
            m_values_per_s: values as f64 / 1e6 / median(these.iter().copied()),
        })
        .collect()
}

/// Seconds of CPU time of each run, once a round, after a run of each that does not count.
pub fn take_turns(rounds: usize, runs: &mut [&mut dyn FnMut()]) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); runs.len()];
    for run in runs.iter_mut() {
        run();
    }
    for _ in 0..rounds {
        for (run, times) in runs.iter_mut().zip(&mut times) {
            let start = cpu_time();
            run();
            times.push((cpu_time() - start).as_secs_f64());
        }
    }
    times
}

/// The first as a multiple of the second: the median over the rounds, each of which timed both.
pub fn ratio(times: &[f64], others: &[f64]) -> f64 {
    median(times.iter().zip(others).map(|(time, other)| time / other))
}

pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).expect("nanoseconds"))
}

pub fn print(rows: &[Row]) {
    println!("{:<12} {:<34} {:>12} {:>12} {:>18}", "case", "decoder", "bytes", "M values/s", "time / tilekern");
    for row in rows {
        println!(
            "{:<12} {:<34} {:>12} {:>12.1} {:>18.2}",
            row.case, row.decoder, row.bytes, row.m_values_per_s, row.x_tilekern
        );
    }
}
