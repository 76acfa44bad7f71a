//! Code of other libraries on data that may be damaged: what they do not foresee ends in a panic, which must not end the
//! program.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};

thread_local! {
    /// Whether this thread is at such work.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does some work, or gives `None` where it panics. What the work had borrowed must not be used any more then.
///
/// The panic is told on standard error all the same, as every other one, unless [`hush_guarded_panics`] was called.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    let before = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    result.ok()
}

/// Keeps panics of [`guarded`] work from being told: they become errors anyway. All others are told as before.
///
/// It puts a hook before the one that is there, so a program calls it once, when it starts; the library never does.
pub fn hush_guarded_panics() {
    let told = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !GUARDED.get() {
            told(info);
        }
    }));
}
