//! AVX2: eight words at a time.

mod rounds;

use self::rounds::{BLOCKS, rounds};
use super::clear::{each, stack_pointer, zero};
use super::portable::{fill_up, xor_window};
use super::text::{Source, Stream, Text, Window};
use super::x86::byte_order;
use super::{Features, Isa, Kernel, Word};
use crate::chacha20::{ChaCha20, Lent, Stitch};
use crate::poly1305::Poly1305;
use crate::poly1305::steps::Steps;
use core::arch::asm;
use core::arch::x86_64::*;

/// The proof that this CPU has AVX2 and BMI2.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn new(features: Features) -> Option<Self> {
        features.include(Features::AVX2 | Features::BMI2).then_some(Self(()))
    }
}

impl Isa for Avx2 {
    type Word = Ymm;

    #[inline(always)]
    fn enter<K: Kernel<Self>>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,bmi2")]
        #[inline(never)]
        fn featured<K: Kernel<Avx2>>(isa: Avx2, kernel: K, end: &mut usize) -> K::Output {
            *end = stack_pointer();
            kernel.run(isa)
        }
        let mut end = 0;
        // SAFETY: the token proves the features.
        let output = unsafe { featured(self, kernel, &mut end) };
        // SAFETY: likewise; the kernel was called here, and its frame ended there.
        unsafe { clear(end) };
        output
    }

    #[inline(always)]
    fn splat(self, x: u32) -> Ymm {
        // SAFETY: the token proves AVX2.
        Ymm(unsafe { _mm256_set1_epi32(x.cast_signed()) })
    }

    #[inline(always)]
    fn splat_row(self, row: [u32; 4]) -> Ymm {
        let [a, b, c, d] = row.map(u32::cast_signed);
        // SAFETY: the token proves AVX2.
        Ymm(unsafe { _mm256_setr_epi32(a, b, c, d, a, b, c, d) })
    }

    #[inline(always)]
    fn lane_numbers(self) -> Ymm {
        // SAFETY: the token proves AVX2.
        Ymm(unsafe { _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7) })
    }

    #[inline(always)]
    fn row_numbers(self) -> Ymm {
        // SAFETY: the token proves AVX2.
        Ymm(unsafe { _mm256_setr_epi32(0, 0, 0, 0, 1, 0, 0, 0) })
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
            while window.len() - done >= Ymm::BYTES {
                let keystream = stream.pointer(at + done, Ymm::BYTES);
                // SAFETY: 32 bytes are there to read, and the token proves AVX2.
                let keystream = Ymm(unsafe { _mm256_loadu_si256(keystream.cast()) });
                let written = keystream.xor_into(&window, done);
                if KEEP {
                    written.keep(stream, at + done);
                }
                done += Ymm::BYTES;
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

/// Zeroes what a kernel has left.
///
/// # Safety
/// To be called from where the kernel was called, whose frame ended at `end`.
#[target_feature(enable = "avx2,bmi2")]
#[inline(never)]
unsafe fn clear(end: usize) {
    // SAFETY: the features are enabled, and the stack down to `end` is dead.
    unsafe {
        zero!(end, "vmovdqu" "ymm0": 0 32,
            each!("vpxor" 3 "xmm": 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15));
    }
}

/// Runs an instruction on vectors.
macro_rules! run {
    ($instruction:path, $($vector:expr),+) => {
        // SAFETY: a Ymm proves AVX2, and the instruction touches registers only.
        Ymm(unsafe { $instruction($($vector.0),+) })
    };
}

/// A vector of AVX2, and so the proof that the CPU has it.
#[derive(Clone, Copy)]
pub(crate) struct Ymm(__m256i);

impl Ymm {
    /// Moves the bytes of each half: byte `i` takes the value of byte `order[i]`.
    #[inline(always)]
    fn shuffle_bytes(self, order: [u8; 32]) -> Self {
        /// Unseen by the compiler, which would take a known shuffle apart into two or three.
        #[target_feature(enable = "avx2")]
        #[inline]
        fn unseen(order: [u8; 32]) -> __m256i {
            // SAFETY: both are 32 bytes of any value.
            let mut order: __m256i = unsafe { core::mem::transmute(order) };
            // SAFETY: no instruction.
            unsafe {
                asm!("/* {0} */", inout(ymm_reg) order, options(pure, nomem, nostack, preserves_flags));
            };
            order
        }
        // SAFETY: a Ymm proves AVX2.
        let order = Self(unsafe { unseen(order) });
        run!(_mm256_shuffle_epi8, self, order)
    }

    /// Rotates each word left by `LEFT`, which is 32 less `RIGHT`.
    #[inline(always)]
    fn shift_and_or<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        const { assert!(LEFT + RIGHT == 32) };
        let left = run!(_mm256_slli_epi32::<LEFT>, self);
        let right = run!(_mm256_srli_epi32::<RIGHT>, self);
        run!(_mm256_or_si256, left, right)
    }
}

impl Word for Ymm {
    const LANES: usize = 8;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        run!(_mm256_add_epi32, self, other)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        run!(_mm256_xor_si256, self, other)
    }

    #[inline(always)]
    fn rotate_left<const N: i32>(self) -> Self {
        match N {
            16 => self.shuffle_bytes(LEFT_16),
            12 => self.shift_and_or::<12, 20>(),
            8 => self.shuffle_bytes(LEFT_8),
            _ => self.shift_and_or::<7, 25>(),
        }
    }

    #[inline(always)]
    fn turn<const N: i32>(self) -> Self {
        match N {
            1 => run!(_mm256_shuffle_epi32::<0b00_11_10_01>, self),
            2 => run!(_mm256_shuffle_epi32::<0b01_00_11_10>, self),
            _ => run!(_mm256_shuffle_epi32::<0b10_01_00_11>, self),
        }
    }

    #[inline(always)]
    fn transpose_groups([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let ab_low = run!(_mm256_unpacklo_epi32, a, b);
        let ab_high = run!(_mm256_unpackhi_epi32, a, b);
        let cd_low = run!(_mm256_unpacklo_epi32, c, d);
        let cd_high = run!(_mm256_unpackhi_epi32, c, d);
        [
            run!(_mm256_unpacklo_epi64, ab_low, cd_low),
            run!(_mm256_unpackhi_epi64, ab_low, cd_low),
            run!(_mm256_unpacklo_epi64, ab_high, cd_high),
            run!(_mm256_unpackhi_epi64, ab_high, cd_high),
        ]
    }

    #[inline(always)]
    fn unzip(rows: [Self; 4]) -> [Self; 4] {
        let [a, b, c, d] = rows;
        [
            run!(_mm256_permute2x128_si256::<0x20>, a, b),
            run!(_mm256_permute2x128_si256::<0x20>, c, d),
            run!(_mm256_permute2x128_si256::<0x31>, a, b),
            run!(_mm256_permute2x128_si256::<0x31>, c, d),
        ]
    }

    #[inline(always)]
    fn keep(self, stream: &mut Stream<'_>, at: usize) {
        let place = stream.place(at, Self::BYTES);
        // SAFETY: 32 bytes of room are there, and a Ymm proves AVX2.
        unsafe { _mm256_storeu_si256(place.cast(), self.0) };
    }

    #[inline(always)]
    fn first_row(self) -> [u64; 2] {
        // SAFETY: a Ymm proves AVX2.
        let row = unsafe { _mm256_castsi256_si128(self.0) };
        // SAFETY: any sixteen bytes are two integers.
        unsafe { core::mem::transmute(row) }
    }

    #[inline(always)]
    fn xor_into(self, window: &Window<'_>, at: usize) -> Self {
        let (src, dst) = window.pointers(at, Self::BYTES);
        // SAFETY: 32 bytes are there to read, and a Ymm proves AVX2.
        let text = Self(unsafe { _mm256_loadu_si256(src.cast()) });
        let text = text.xor(self);
        // SAFETY: 32 bytes are there to write.
        unsafe { _mm256_storeu_si256(dst.cast(), text.0) };
        text
    }
}

impl ChaCha20 for Avx2 {
    const ROW_SETS: &'static [usize] = &[1, 2, 3];
    const HEAD_SETS: &'static [usize] = &[3];
    const HEAD_START: bool = false;
    const FREE_SPLATS: bool = false;
    const PAIRS: bool = false;
    const TAIL_SETS: &'static [usize] = &[1, 2, 3];

    #[inline(always)]
    fn tile_rounds(self, v: &mut [Ymm; 16], count: usize, stitch: &mut impl Stitch) {
        let mut words = [v[0].0; 16];
        for i in 0..16 {
            words[i] = v[i].0;
        }
        let idle = Lent { h: [0; 3], r: [0; 2], blocks: Source::from(&[][..]) };
        let Lent { mut h, r: [r0, r1], blocks } = stitch.lend(count, BLOCKS).unwrap_or(idle);
        let r = [r0, r1, r1 + (r1 >> 2)];
        // SAFETY: the token proves AVX2 and BMI2.
        unsafe { rounds(&mut words, count, &mut h, r, blocks, LEFT_16, LEFT_8) };
        stitch.give_back(h);
        for i in 0..16 {
            v[i] = Ymm(words[i]);
        }
    }
}

const LEFT_16: [u8; 32] = byte_order([2, 3, 0, 1]);
const LEFT_8: [u8; 32] = byte_order([3, 0, 1, 2]);

impl Poly1305 for Avx2 {
    const SINGLY: usize = 0;
    type Short = Steps<2>;
    type Long = Steps<2>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chacha20::double_round;
    use crate::poly1305::Key;
    use crate::poly1305::scalar::Scalar;

    /// The assembly equals the generic rounds and the scalar hash at every number of rounds and every
    /// backlog that it can take, on words and blocks of extreme and of mixed bits.
    #[test]
    fn woven_rounds_equal_their_twins() {
        // none where the CPU has no AVX2; that it must have it is tested by EXPECT_BACKENDS
        if let Some(isa) = Avx2::new(Features::detect()) {
            isa.enter(Twins);
        }
    }

    struct Twins;

    impl Kernel<Avx2> for Twins {
        type Output = ();

        fn run(self, isa: Avx2) {
            let mut seed = 1u64;
            let mut random = || {
                seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (seed ^ seed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
            };
            for round in 0..40 {
                for count in 0..=10 {
                    for with in 0..=count {
                        let mut bytes = [0; 40 * 16];
                        bytes.fill_with(|| match round {
                            0 => 0,
                            1 => 0xff,
                            _ => random() as u8,
                        });
                        let blocks = Source::from(&bytes[..with * BLOCKS * 16]);
                        // a state as after earlier blocks
                        let (key, start) = match round {
                            // under r = 1 a carry runs through both lower limbs into the top one
                            0 => (Key { r: [1, 0], s: [0; 2] }, [!0, !0, 3]),
                            1 => (Key::new([[!0; 2]; 2]), [!0, !0, 6]),
                            _ => {
                                let key = Key::new([[random(), random()]; 2]);
                                (key, [random(), random(), random() % 7])
                            }
                        };
                        let mut twin = Scalar::new(key);
                        twin.resume(start);
                        let (mut h, [r0, r1]) = twin.state();
                        twin.absorb(blocks);

                        let mut v = [isa.splat(0); 16];
                        for word in &mut v {
                            let x = if round < 2 { !0 } else { random() as u32 };
                            *word = isa.splat(x).add(isa.lane_numbers());
                        }
                        let mut words = v.map(|word| word.0);
                        let r = [r0, r1, r1 + (r1 >> 2)];
                        // SAFETY: the token proves AVX2 and BMI2.
                        unsafe { rounds(&mut words, count, &mut h, r, blocks, LEFT_16, LEFT_8) };

                        for _ in 0..count {
                            double_round(&mut v);
                        }
                        for i in 0..16 {
                            let bits = |x: __m256i| -> [u32; 8] {
                                // SAFETY: both are 32 bytes of any value.
                                unsafe { core::mem::transmute(x) }
                            };
                            assert_eq!(bits(words[i]), bits(v[i].0), "word {i}, {with} of {count}");
                        }
                        assert!(h[2] <= if with == 0 { 6 } else { 5 });
                        // the limbs may differ by what is not yet reduced; under an `r` that is not 1
                        // the bits above 2^128 reach the tag
                        let [woven, twin] = [h, twin.state().0].map(|h| {
                            let mut hash = Scalar::new(Key::new([[!0; 2]; 2]));
                            hash.resume(h);
                            hash.absorb_block([0; 16]);
                            hash.tag()
                        });
                        assert_eq!(woven, twin, "hash, {with} of {count}");
                    }
                }
            }
        }
    }
}
