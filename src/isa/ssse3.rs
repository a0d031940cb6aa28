//! SSSE3: four words at a time, which shuffles of bytes rotate.

use super::clear::{clear, stack_pointer};
use super::portable::{fill_up, xor_window};
use super::text::{Stream, Text, Window};
use super::x86::byte_order;
use super::{Features, Isa, Kernel, Word};
use crate::chacha20::ChaCha20;
use crate::poly1305::Poly1305;
use crate::poly1305::steps::Steps;
use core::arch::asm;
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

/// The proof that this CPU has SSSE3, which includes SSE2.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ssse3(());

impl Ssse3 {
    pub(crate) fn new(features: Features) -> Option<Self> {
        features.include(Features::SSSE3).then_some(Self(()))
    }
}

impl Isa for Ssse3 {
    type Word = Xmm;

    #[inline(always)]
    fn enter<K: Kernel<Self>>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "ssse3")]
        #[inline(never)]
        fn featured<K: Kernel<Ssse3>>(isa: Ssse3, kernel: K, end: &mut usize) -> K::Output {
            *end = stack_pointer();
            kernel.run(isa)
        }
        let mut end = 0;
        // SAFETY: the token proves the feature.
        let output = unsafe { featured(self, kernel, &mut end) };
        // SAFETY: the kernel was called here, and its frame ended there.
        unsafe { clear(end) };
        output
    }

    #[inline(always)]
    fn splat(self, x: u32) -> Xmm {
        // SAFETY: the token proves SSE2.
        Xmm(unsafe { _mm_set1_epi32(x.cast_signed()) })
    }

    #[inline(always)]
    fn splat_row(self, row: [u32; 4]) -> Xmm {
        let [a, b, c, d] = row.map(u32::cast_signed);
        // SAFETY: the token proves SSE2.
        Xmm(unsafe { _mm_setr_epi32(a, b, c, d) })
    }

    #[inline(always)]
    fn lane_numbers(self) -> Xmm {
        self.splat_row([0, 1, 2, 3])
    }

    #[inline(always)]
    fn row_numbers(self) -> Xmm {
        self.splat(0)
    }

    #[inline(always)]
    fn xor<const KEEP: bool>(
        self,
        stream: &mut Stream<'_>,
        at: usize,
        text: &mut Text<'_>,
        max: usize,
    ) {
        let mut at = at;
        let mut max = max;
        while let Some(window) = text.some(max) {
            let mut done = 0;
            while window.len() - done >= Xmm::BYTES {
                let keystream = stream.pointer(at + done, Xmm::BYTES);
                // SAFETY: 16 bytes are there to read, and the token proves SSE2.
                let keystream = Xmm(unsafe { _mm_loadu_si128(keystream.cast()) });
                let written = keystream.xor_into(&window, done);
                if KEEP {
                    written.keep(stream, at + done);
                }
                done += Xmm::BYTES;
            }
            xor_window::<KEEP>(stream, at, &window, done);
            at += window.len();
            max -= window.len();
        }
        if KEEP {
            fill_up(stream, at / 16 * 16, at % 16);
        }
    }
}

/// Runs an instruction on vectors.
macro_rules! run {
    ($instruction:path, $($vector:expr),+) => {
        // SAFETY: an Xmm proves SSSE3, and the instruction touches registers only.
        Xmm(unsafe { $instruction($($vector.0),+) })
    };
}

/// A vector of SSE, and so the proof that the CPU has SSSE3.
#[derive(Clone, Copy)]
pub(crate) struct Xmm(__m128i);

impl Xmm {
    /// Moves the bytes: byte `i` takes the value of byte `order[i]`.
    #[inline(always)]
    fn shuffle_bytes(self, order: [u8; 16]) -> Self {
        /// Unseen by the compiler, which would take a known shuffle apart into two or three.
        #[target_feature(enable = "ssse3")]
        #[inline]
        fn unseen(order: [u8; 16]) -> __m128i {
            // SAFETY: both are 16 bytes of any value.
            let mut order: __m128i = unsafe { core::mem::transmute(order) };
            // SAFETY: no instruction.
            unsafe {
                asm!("/* {0} */", inout(xmm_reg) order, options(pure, nomem, nostack, preserves_flags));
            };
            order
        }
        // SAFETY: an Xmm proves SSSE3.
        let order = Self(unsafe { unseen(order) });
        run!(_mm_shuffle_epi8, self, order)
    }

    /// Rotates each word left by `LEFT`, which is 32 less `RIGHT`.
    #[inline(always)]
    fn shift_and_or<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        const { assert!(LEFT + RIGHT == 32) };
        let left = run!(_mm_slli_epi32::<LEFT>, self);
        let right = run!(_mm_srli_epi32::<RIGHT>, self);
        run!(_mm_or_si128, left, right)
    }
}

impl Word for Xmm {
    const LANES: usize = 4;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        run!(_mm_add_epi32, self, other)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        run!(_mm_xor_si128, self, other)
    }

    #[inline(always)]
    fn rotate_left<const N: i32>(self) -> Self {
        match N {
            16 => self.shuffle_bytes(byte_order([2, 3, 0, 1])),
            12 => self.shift_and_or::<12, 20>(),
            8 => self.shuffle_bytes(byte_order([3, 0, 1, 2])),
            _ => self.shift_and_or::<7, 25>(),
        }
    }

    #[inline(always)]
    fn turn<const N: i32>(self) -> Self {
        match N {
            1 => run!(_mm_shuffle_epi32::<0b00_11_10_01>, self),
            2 => run!(_mm_shuffle_epi32::<0b01_00_11_10>, self),
            _ => run!(_mm_shuffle_epi32::<0b10_01_00_11>, self),
        }
    }

    #[inline(always)]
    fn transpose_groups([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let ab_low = run!(_mm_unpacklo_epi32, a, b);
        let ab_high = run!(_mm_unpackhi_epi32, a, b);
        let cd_low = run!(_mm_unpacklo_epi32, c, d);
        let cd_high = run!(_mm_unpackhi_epi32, c, d);
        [
            run!(_mm_unpacklo_epi64, ab_low, cd_low),
            run!(_mm_unpackhi_epi64, ab_low, cd_low),
            run!(_mm_unpacklo_epi64, ab_high, cd_high),
            run!(_mm_unpackhi_epi64, ab_high, cd_high),
        ]
    }

    #[inline(always)]
    fn unzip(rows: [Self; 4]) -> [Self; 4] {
        rows
    }

    #[inline(always)]
    fn keep(self, stream: &mut Stream<'_>, at: usize) {
        let place = stream.place(at, Self::BYTES);
        // SAFETY: 16 bytes of room are there, and an Xmm proves SSE2.
        unsafe { _mm_storeu_si128(place.cast(), self.0) };
    }

    #[inline(always)]
    fn first_row(self) -> [u64; 2] {
        // SAFETY: a vector proves SSE2; any sixteen bytes are two integers.
        unsafe { core::mem::transmute(self.0) }
    }

    #[inline(always)]
    fn xor_into(self, window: &Window<'_>, at: usize) -> Self {
        let (src, dst) = window.pointers(at, Self::BYTES);
        // SAFETY: 16 bytes are there to read, and an Xmm proves SSSE3.
        let text = Self(unsafe { _mm_loadu_si128(src.cast()) });
        let text = text.xor(self);
        // SAFETY: 16 bytes are there to write.
        unsafe { _mm_storeu_si128(dst.cast(), text.0) };
        text
    }
}

impl ChaCha20 for Ssse3 {
    const ROW_SETS: &'static [usize] = &[1, 2, 3, 4];
    const HEAD_SETS: &'static [usize] = &[4];
    const HEAD_START: bool = false;
    const FREE_SPLATS: bool = false;
    const PAIRS: bool = false;
    const TAIL_SETS: &'static [usize] = &[2, 4];
}

impl Poly1305 for Ssse3 {
    const SINGLY: usize = 0;
    type Short = Steps<2>;
    type Long = Steps<2>;
}
