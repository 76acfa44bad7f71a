//! CPU levels: their names, and the tokens which prove that this CPU has one.

use std::fmt;

/// A set of CPU features for which the table has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Plain loops as compiled for the target's baseline.
    Scalar,
    /// AArch64 with Advanced SIMD.
    Neon,
    /// x86-64-v3: AVX2, BMI1, BMI2, LZCNT, POPCNT, FMA.
    Avx2,
    /// Ice Lake and Zen 4 class: AVX-512 F, BW, CD, DQ, VL, VBMI and VBMI2. CPUs with an older AVX-512 use
    /// [`Level::Avx2`] on purpose.
    Avx512,
}

impl Level {
    /// Every level, from the plainest to the widest, whether or not this CPU has it.
    pub const ALL: [Level; 4] = [Level::Scalar, Level::Neon, Level::Avx2, Level::Avx512];

    /// The name that `TILEKERN_KERNEL` and `--kernel` take.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Scalar => "scalar",
            Level::Neon => "neon",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kernel was asked for by a name that is unknown, or that this CPU cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchKernel {
    /// The name as given.
    pub name: String,
    /// Whether the name is a level's (then this CPU lacks it).
    pub known: bool,
}

impl fmt::Display for NoSuchKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = if self.known { "is not available on this CPU" } else { "is unknown" };
        write!(f, "kernel \"{}\" {why}; available here:", self.name)?;
        for kernels in crate::Kernels::available() {
            write!(f, " {}", kernels.name())?;
        }
        Ok(())
    }
}

impl std::error::Error for NoSuchKernel {}

/// Tokens of x86-64. A value exists only where this CPU, and the operating system, has the features that its level's
/// kernels enable; the table takes one before it hands a row out.
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    pub(crate) use pulp::x86::V3 as Avx2;

    pulp::simd_type! {
        struct Features {
            sse: "sse", sse2: "sse2", sse3: "sse3", ssse3: "ssse3", sse4_1: "sse4.1", sse4_2: "sse4.2",
            popcnt: "popcnt", avx: "avx", avx2: "avx2", bmi1: "bmi1", bmi2: "bmi2", fma: "fma", lzcnt: "lzcnt",
            f: "avx512f", bw: "avx512bw", cd: "avx512cd", dq: "avx512dq", vl: "avx512vl",
            vbmi: "avx512vbmi", vbmi2: "avx512vbmi2",
        }
    }

    /// The features of [`Level::Avx512`](crate::Level::Avx512).
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(Features);

    impl Avx512 {
        /// The token, where this CPU has all of the level's features.
        #[inline]
        pub(crate) fn try_new() -> Option<Avx512> {
            // pulp 0.22 takes "avx512vl" for its AVX-512 F type, whose own test includes VL only as a detail of today.
            if !std::arch::is_x86_feature_detected!("avx512vl") {
                return None;
            }
            Features::try_new().map(Avx512)
        }
    }
}

/// Token of AArch64.
#[cfg(target_arch = "aarch64")]
pub(crate) mod aarch64 {
    pub(crate) use pulp::aarch64::Neon;
}
