//! What this x86 CPU has, and the system lets us use.

/// A set of CPU features, each found by detection: a set can be narrowed, never widened.
#[derive(Clone, Copy)]
pub(crate) struct Features(u32);

macro_rules! features {
    ($($bit:literal $constant:ident $module:ident $name:tt)+) => {
        $(cpufeatures::new!($module, $name);)+

        impl Features {
            #[cfg(test)]
            pub(crate) const COUNT: u32 = [$($bit),+].len() as u32;

            $(pub(super) const $constant: u32 = 1 << $bit;)+

            pub(crate) fn detect() -> Self {
                let mut found = 0;
                $(if $module::get() {
                    found |= Self::$constant;
                })+
                Self(found)
            }
        }
    };
}

features! {
    0 SSSE3 ssse3 "ssse3"
    1 AVX2 avx2 "avx2"
    2 BMI2 bmi2 "bmi2"
    3 AVX512F avx512f "avx512f"
    4 AVX512BW avx512bw "avx512bw"
    5 AVX512VL avx512vl "avx512vl"
    6 AVX512IFMA avx512ifma "avx512ifma"
    7 AVX512VBMI2 avx512vbmi2 "avx512vbmi2"
}

impl Features {
    pub(super) fn include(self, all: u32) -> bool {
        self.0 & all == all
    }

    /// The features that are in `mask` too.
    #[cfg(test)]
    pub(crate) fn masked(self, mask: u32) -> Self {
        Self(self.0 & mask)
    }
}

/// The order of bytes that gives byte `i` of each word the value of its byte `word[i]`, in each half
/// of sixteen bytes.
pub(super) const fn byte_order<const LEN: usize>(word: [u8; 4]) -> [u8; LEN] {
    let mut order = [0; LEN];
    let mut i = 0;
    while i < LEN {
        order[i] = word[i % 4] + ((i as u8 % 16) & !3);
        i += 1;
    }
    order
}
