//! Times of several things that take turns, so that a machine whose speed drifts slows all of them alike.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Which time counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// CPU time of the calling thread: what work costs on a machine that is busy with other things too.
    Cpu,
    /// Time on the wall: for work on several threads.
    Wall,
}

/// CPU time of the calling thread.
#[cfg(unix)]
pub fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Time since the first call: this system tells no CPU time of a thread.
#[cfg(not(unix))]
pub fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Something to be timed.
pub struct Case<'a> {
    clock: Clock,
    run: Box<dyn FnMut() + 'a>,
    /// Runs that one reading covers.
    repeat: u32,
    /// Seconds of one run by the case's clock, a reading each.
    readings: Vec<f64>,
    /// The same readings by the wall.
    wall: Vec<f64>,
}

impl<'a> Case<'a> {
    pub fn new<R>(clock: Clock, mut run: impl FnMut() -> R + 'a) -> Case<'a> {
        let run = Box::new(move || {
            black_box(run());
        });
        Case { clock, run, repeat: 1, readings: Vec::new(), wall: Vec::new() }
    }

    /// CPU time and time on the wall of `repeat` runs.
    fn time(&mut self) -> (Duration, Duration) {
        let (cpu, wall) = (cpu_time(), Instant::now());
        for _ in 0..self.repeat {
            (self.run)();
        }
        (cpu_time().saturating_sub(cpu), wall.elapsed())
    }

    fn read(&mut self) {
        let (cpu, wall) = self.time();
        let per_run = |time: Duration| time.as_secs_f64() / f64::from(self.repeat);
        self.readings.push(per_run(if self.clock == Clock::Cpu { cpu } else { wall }));
        self.wall.push(per_run(wall));
    }

    pub fn median(&self) -> f64 {
        median(self.readings.clone())
    }

    pub fn minimum(&self) -> f64 {
        self.readings.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// This case's time as a multiple of another's: the median over the rounds, each of which timed both.
    pub fn ratio_to(&self, other: &Case<'_>) -> f64 {
        median(self.readings.iter().zip(&other.readings).map(|(a, b)| a / b).collect())
    }
}

/// How much sooner `many` is done than `one`, by the wall: the median over the rounds.
pub fn speedup(one: &Case<'_>, many: &Case<'_>) -> f64 {
    median(one.wall.iter().zip(&many.wall).map(|(one, many)| one / many).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n.is_multiple_of(2) => (values[n / 2 - 1] + values[n / 2]) / 2.0,
        n => values[n / 2],
    }
}

/// Reads each case once a round, after a run of each that does not count. A reading covers `at_least` of time.
pub fn take_turns(cases: &mut [Case<'_>], rounds: usize, at_least: Duration) {
    for case in cases.iter_mut() {
        (case.run)();
        while case.time().1 < at_least {
            case.repeat *= 2;
        }
    }
    for _ in 0..rounds {
        for case in cases.iter_mut() {
            case.read();
        }
    }
}
