//! A row of one's own: how an accelerator, or a CPU that this crate does not know, takes over single operations.

use std::sync::atomic::{AtomicUsize, Ordering};

use tilekern_kernels::{CountsSeen, Kernels, Store};

/// Stands for the accelerator; it counts what it is given.
static SENT: AtomicUsize = AtomicUsize::new(0);

/// Keeps the contract: any bytes, exactly `out.len()` results, evidence of a zero count.
fn counts(lo: &[u8], hi: &[u8], out: &mut [i32], _: Store) -> CountsSeen {
    SENT.fetch_add(out.len(), Ordering::Relaxed);
    let mut seen = CountsSeen::default();
    for (out, (&lo, &hi)) in out.iter_mut().zip(lo.iter().zip(hi)) {
        *out = i32::from(u16::from_le_bytes([lo, hi]));
        seen.zero |= *out == 0;
    }
    seen
}

fn main() {
    // All other operations are those of the best level of this CPU.
    let kernels = Kernels::custom("accelerator", Kernels::auto()).counts_i32(counts).build();

    let mut values = [0; 4];
    let seen = kernels.counts_i32(&[1, 0, 44, 255], &[0, 0, 1, 255], &mut values, Store::Cached);
    assert_eq!(values, [1, 0, 300, 65_535]);
    assert!(seen.zero);

    let mut genes = [0; 4];
    let seen = kernels.gaps(&[7, 1, 2, 3], &[0; 4], &[0, 3, 4], &mut genes, Store::Cached);
    assert_eq!((genes, seen.last), ([7, 8, 10, 3], 10));

    println!("row \"{}\" on {}: {values:?} by it, {genes:?} inherited", kernels.name(), kernels.level());
    assert_eq!(SENT.load(Ordering::Relaxed), 4);
}
