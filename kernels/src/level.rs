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

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    pub(crate) use pulp::x86::V3 as Avx2;

    mod token {
        pulp::simd_type! {
            /// The features of [`Level::Avx512`](crate::Level::Avx512).
            pub struct Avx512Features {
                pub sse: "sse", pub sse2: "sse2", pub sse3: "sse3", pub ssse3: "ssse3",
                pub sse4_1: "sse4.1", pub sse4_2: "sse4.2", pub popcnt: "popcnt",
                pub avx: "avx", pub avx2: "avx2", pub bmi1: "bmi1", pub bmi2: "bmi2", pub fma: "fma", pub lzcnt: "lzcnt",
                pub f: "avx512f", pub bw: "avx512bw", pub cd: "avx512cd", pub dq: "avx512dq", pub vl: "avx512vl",
                pub vbmi: "avx512vbmi", pub vbmi2: "avx512vbmi2",
            }
        }
    }
}
