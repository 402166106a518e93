//! Rivals that take turns.

use std::time::{Duration, Instant};

use crate::Outcome;

/// One way to do a piece of work: does it once and returns how long that took, without what it did to get ready.
type Run<'a> = Box<dyn FnMut() -> Outcome<Duration> + 'a>;

/// Ways to do the same work, run in turn.
#[derive(Default)]
pub struct Contest<'a> {
    runs: Vec<Run<'a>>,
    times: Vec<Vec<Duration>>,
}

impl<'a> Contest<'a> {
    /// Adds a contestant and returns its number.
    pub fn add(&mut self, run: impl FnMut() -> Outcome<Duration> + 'a) -> usize {
        self.runs.push(Box::new(run));
        self.times.push(Vec::new());
        self.runs.len() - 1
    }

    /// Runs each contestant once to warm up, then once in each round.
    ///
    /// # Errors
    ///
    /// That of the first contestant that fails.
    pub fn run(&mut self, rounds: usize) -> Outcome<()> {
        for run in &mut self.runs {
            run()?;
        }
        for _ in 0..rounds {
            for (run, times) in self.runs.iter_mut().zip(&mut self.times) {
                times.push(run()?);
            }
        }
        Ok(())
    }

    /// Returns a contestant's median time.
    pub fn median(&self, contestant: usize) -> Duration {
        percentile(&self.times[contestant], 50)
    }

    /// Returns how many times longer `one` took than `other`: the median of what each round says.
    pub fn ratio(&self, one: usize, other: usize) -> f64 {
        let pairs = self.times[one].iter().zip(&self.times[other]);
        let mut ratios: Vec<f64> =
            pairs.map(|(one, other)| one.as_secs_f64() / other.as_secs_f64().max(1e-9)).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Returns how much longer `one` took than `other`, in milliseconds: the median of what each round says.
    pub fn excess(&self, one: usize, other: usize) -> f64 {
        let pairs = self.times[one].iter().zip(&self.times[other]);
        let mut excesses: Vec<f64> =
            pairs.map(|(one, other)| (one.as_secs_f64() - other.as_secs_f64()) * 1e3).collect();
        excesses.sort_unstable_by(f64::total_cmp);
        excesses.get(excesses.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// How many contestants and rounds: what they run is not shown.
impl std::fmt::Debug for Contest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rounds = self.times.first().map_or(0, Vec::len);
        write!(f, "Contest({} contestants, {rounds} rounds)", self.runs.len())
    }
}

/// Does something and returns how long it took. What it returned is dropped after the clock has stopped.
///
/// # Errors
///
/// Its own.
pub fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<Duration> {
    let start = Instant::now();
    let done = std::hint::black_box(work()?);
    let took = start.elapsed();
    drop(done);
    Ok(took)
}

/// Returns the time that so many percent of all times do not exceed; zero of none.
pub fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 50), Duration::from_millis(50));
        assert_eq!(percentile(&times, 99), Duration::from_millis(99));
        assert_eq!(percentile(&times, 100), Duration::from_millis(100));
        assert_eq!(percentile(&times[..1], 99), Duration::from_millis(100));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        let mut contest = Contest::default();
        let mut load = 0;
        let slow = contest.add(move || {
            load += 1;
            Ok(Duration::from_millis(30 * load))
        });
        let mut load = 0;
        let fast = contest.add(move || {
            load += 1;
            Ok(Duration::from_millis(10 * load))
        });
        contest.run(5).unwrap();
        assert!((contest.ratio(slow, fast) - 3.0).abs() < 1e-9);
        assert!((contest.excess(slow, fast) - 80.0).abs() < 1e-6);
        assert_eq!(contest.median(fast), Duration::from_millis(40));
    }
}
