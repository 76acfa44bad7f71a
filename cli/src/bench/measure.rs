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

impl Clock {
    fn time(self, run: &mut dyn FnMut()) -> Duration {
        match self {
            Clock::Wall => {
                let start = Instant::now();
                run();
                start.elapsed()
            }
            Clock::Cpu => {
                let start = cpu_time();
                run();
                cpu_time().saturating_sub(start)
            }
        }
    }
}

#[cfg(unix)]
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(not(unix))]
fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Something to be timed.
pub struct Case<'a> {
    clock: Clock,
    run: Box<dyn FnMut() + 'a>,
    /// Runs that one reading covers.
    repeat: u32,
    /// Seconds of one run, a reading each.
    readings: Vec<f64>,
}

impl<'a> Case<'a> {
    pub fn new<R>(clock: Clock, mut run: impl FnMut() -> R + 'a) -> Case<'a> {
        let run = Box::new(move || {
            black_box(run());
        });
        Case { clock, run, repeat: 1, readings: Vec::new() }
    }

    fn read(&mut self) -> f64 {
        let Case { clock, run, repeat, .. } = self;
        clock.time(&mut || (0..*repeat).for_each(|_| run())).as_secs_f64() / f64::from(*repeat)
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n.is_multiple_of(2) => (values[n / 2 - 1] + values[n / 2]) / 2.0,
        n => values[n / 2],
    }
}

/// Reads each case once a round, after a run of each that does not count. A reading covers `at_least` of time.
pub fn take_turns(cases: &mut [Case<'_>], rounds: usize, at_least: Duration, mut round_done: impl FnMut()) {
    for case in cases.iter_mut() {
        (case.run)();
        while case.clock.time(&mut || (0..case.repeat).for_each(|_| (case.run)())) < at_least {
            case.repeat *= 2;
        }
    }
    for _ in 0..rounds {
        for case in cases.iter_mut() {
            let reading = case.read();
            case.readings.push(reading);
        }
        round_done();
    }
}
