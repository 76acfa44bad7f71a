//! Panics of guarded work become errors, and are told or not. Alone in its process: hooks are for all threads.

use std::panic::{catch_unwind, set_hook};
use std::sync::atomic::{AtomicUsize, Ordering};

use tilekern::{guarded, hush_guarded_panics};

#[test]
fn only_guarded_panics_are_hushed() {
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    let told = || TOLD.swap(0, Ordering::SeqCst);
    set_hook(Box::new(|_| {
        TOLD.fetch_add(1, Ordering::SeqCst);
    }));
    assert_eq!((guarded(|| 7), told()), (Some(7), 0));
    assert_eq!((guarded(|| -> u8 { panic!("damaged") }), told()), (None, 1));
    hush_guarded_panics();
    assert_eq!((guarded(|| -> u8 { panic!("damaged") }), told()), (None, 0));
    // Within another one, and behind it.
    let nested = guarded(|| (guarded(|| -> u8 { panic!("inner") }), guarded(|| -> u8 { panic!("inner, again") })));
    assert_eq!((nested, told()), (Some((None, None)), 0));
    assert!(catch_unwind(|| panic!("ours")).is_err());
    assert_eq!(told(), 1);
    // Other threads of the work are not at it: what they do is told.
    let other = guarded(|| std::thread::spawn(|| panic!("elsewhere")).join().is_err());
    assert_eq!((other, told()), (Some(true), 1));
}
