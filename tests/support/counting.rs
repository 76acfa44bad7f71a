//! An allocator that counts: what a steady loop asks for, and the largest piece of a hostile one.
#![allow(unsafe_code)] // an allocator has no other form

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what a thread asks for.
pub struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no counters any more.
        _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
        _ = LARGEST.try_with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: the caller's, unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's, unchanged.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and the largest of them while `work` runs.
pub fn counted(work: impl FnOnce()) -> (u64, usize) {
    let before = CALLS.get();
    LARGEST.set(0);
    work();
    (CALLS.get() - before, LARGEST.get())
}
