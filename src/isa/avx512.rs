//! AVX-512: sixteen words or eight 52-bit multiplications at a time.

use super::clear::{each, stack_pointer, zero};
use super::text::{Source, Stream, Text, Window};
use super::{Features, Isa, Kernel, Word};
use crate::chacha20::ChaCha20;
use crate::poly1305::Poly1305;
use crate::poly1305::wide::{Lanes, Multiply52, Wide};
use core::arch::x86_64::*;
use core::hint::black_box;

/// The proof that this CPU has AVX-512 F, BW, VL, IFMA and VBMI2, and BMI2.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn new(features: Features) -> Option<Self> {
        let all = Features::AVX512F
            | Features::AVX512BW
            | Features::AVX512VL
            | Features::AVX512IFMA
            | Features::AVX512VBMI2
            | Features::BMI2;
        features.include(all).then_some(Self(()))
    }
}

impl Isa for Avx512 {
    type Word = Zmm;

    #[inline(always)]
    fn enter<K: Kernel<Self>>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma,avx512vbmi2,bmi2")]
        #[inline(never)]
        fn featured<K: Kernel<Avx512>>(isa: Avx512, kernel: K, end: &mut usize) -> K::Output {
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
    fn splat(self, x: u32) -> Zmm {
        // SAFETY: the token proves AVX-512 F.
        Zmm(unsafe { _mm512_set1_epi32(x.cast_signed()) })
    }

    #[inline(always)]
    fn splat_row(self, row: [u32; 4]) -> Zmm {
        let [a, b, c, d] = row.map(u64::from);
        let (low, high) = ((a | b << 32).cast_signed(), (c | d << 32).cast_signed());
        // SAFETY: the token proves AVX-512 F, which includes SSE2.
        let row = unsafe { _mm_set_epi64x(high, low) };
        // SAFETY: the token proves AVX-512 F.
        Zmm(unsafe { _mm512_broadcast_i32x4(row) })
    }

    #[inline(always)]
    fn lane_numbers(self) -> Zmm {
        // SAFETY: the token proves AVX-512 F.
        Zmm(unsafe { _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) })
    }

    #[inline(always)]
    fn row_numbers(self) -> Zmm {
        // SAFETY: the token proves AVX-512 F.
        Zmm(unsafe { _mm512_setr_epi32(0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0) })
    }

    #[inline(always)]
    fn xor<const KEEP: bool>(
        self,
        stream: &mut Stream<'_>,
        at: usize,
        text: &mut Text<'_>,
        max: usize,
    ) {
        let mut rest = (text.len() - text.written()).min(max);
        let mut at = at;
        while rest != 0 {
            // whole vectors of one piece; then one that is the last or straddles pieces
            let whole = rest.min(text.piece().len()) / Zmm::BYTES * Zmm::BYTES;
            if let Some(window) = text.whole(whole) {
                let mut done = 0;
                while done < whole {
                    let keystream = Zmm::load(self, stream, at + done);
                    let ciphertext = keystream.xor_into(&window, done);
                    if KEEP {
                        ciphertext.keep(stream, at + done);
                    }
                    done += Zmm::BYTES;
                }
            }
            at += whole;
            rest -= whole;
            let len = rest.min(Zmm::BYTES);
            if len != 0 {
                let dst = text.place(len);
                let bytes = self.gather(text, len).xor(Zmm::load(self, stream, at));
                let mask = first_bytes(len);
                // SAFETY: the token proves AVX-512 BW; `place` has checked that the masked bytes are there.
                unsafe { _mm512_mask_storeu_epi8(dst.cast(), mask, bytes.0) };
                if KEEP {
                    // SAFETY: the token proves AVX-512 BW.
                    let bytes = unsafe { _mm512_maskz_mov_epi8(mask, bytes.0) };
                    Zmm(bytes).keep(stream, at);
                }
            }
            at += len;
            rest -= len;
        }
    }
}

/// Zeroes what a kernel has left.
///
/// # Safety
/// To be called from where the kernel was called, whose frame ended at `end`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma,avx512vbmi2,bmi2")]
#[inline(never)]
unsafe fn clear(end: usize) {
    // SAFETY: the features are enabled, and the stack down to `end` is dead.
    unsafe {
        zero!(end, "vmovdqu64" "zmm0": 0,
            each!("vpxor" 3 "xmm": 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
            each!("vpxord" 3 "zmm": 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31));
    }
}

impl Avx512 {
    /// The next `len` bytes of `text`, at most 64, and zeros after them.
    #[inline(always)]
    fn gather(self, text: &mut Text<'_>, len: usize) -> Zmm {
        // SAFETY: the token proves AVX-512 F.
        let mut bytes = unsafe { _mm512_setzero_si512() };
        let mut done = 0;
        while let Some(window) = text.some(len - done) {
            let (src, _) = window.pointers(0, window.len());
            let mask = first_bytes(window.len()) << done;
            // what lies before the window is masked out, so its address is never used
            let src = src.wrapping_sub(done);
            // SAFETY: the token proves AVX-512 BW, and the masked bytes are those of the window.
            bytes = unsafe { _mm512_mask_loadu_epi8(bytes, mask, src.cast()) };
            done += window.len();
        }
        Zmm(bytes)
    }
}

/// A mask of the first `len` bytes of 64.
#[inline(always)]
fn first_bytes(len: usize) -> u64 {
    if len >= 64 { !0 } else { !(!0 << len) }
}

/// Runs an instruction on vectors.
macro_rules! run {
    ($instruction:path, $($vector:expr),+) => {
        // SAFETY: a Zmm proves AVX-512 F, BW, IFMA and VBMI2, and the instruction touches registers only.
        Zmm(unsafe { $instruction($($vector.0),+) })
    };
}

/// A vector of AVX-512, and so the proof that the CPU has it.
#[derive(Clone, Copy)]
pub(crate) struct Zmm(__m512i);

impl Zmm {
    /// The keystream at byte `at` of `stream`.
    #[inline(always)]
    fn load(_: Avx512, stream: &Stream<'_>, at: usize) -> Self {
        let place = stream.pointer(at, Self::BYTES);
        // SAFETY: 64 written bytes are there, and the token proves AVX-512 F.
        Self(unsafe { _mm512_loadu_si512(place.cast()) })
    }

    /// The lower quadwords of each sixteen bytes of both, and the upper ones.
    ///
    /// One instruction shuffles and two blend, where two that shuffle would do: those wait for one port
    /// in a transposition, which blends pass by. `upper` is the mask of the upper ones; if the compiler
    /// knew it, it would make two shuffles of it again.
    #[inline(always)]
    fn unpack_quads(upper: u8, a: Self, b: Self) -> [Self; 2] {
        // the upper of `a`, the lower of `b`
        let middle = run!(_mm512_alignr_epi8::<8>, b, a);
        // SAFETY: a Zmm proves AVX-512 F.
        let low = unsafe { _mm512_mask_blend_epi64(upper, a.0, middle.0) };
        // SAFETY: likewise.
        let high = unsafe { _mm512_mask_blend_epi64(upper, middle.0, b.0) };
        [Self(low), Self(high)]
    }
}

impl Word for Zmm {
    const LANES: usize = 16;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        run!(_mm512_add_epi32, self, other)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        run!(_mm512_xor_si512, self, other)
    }

    #[inline(always)]
    fn rotate_left<const N: i32>(self) -> Self {
        run!(_mm512_rol_epi32::<N>, self)
    }

    #[inline(always)]
    fn turn<const N: i32>(self) -> Self {
        match N {
            1 => run!(_mm512_shuffle_epi32::<0b00_11_10_01>, self),
            2 => run!(_mm512_shuffle_epi32::<0b01_00_11_10>, self),
            _ => run!(_mm512_shuffle_epi32::<0b10_01_00_11>, self),
        }
    }

    #[inline(always)]
    fn transpose_groups([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let ab_low = run!(_mm512_unpacklo_epi32, a, b);
        let ab_high = run!(_mm512_unpackhi_epi32, a, b);
        let cd_low = run!(_mm512_unpacklo_epi32, c, d);
        let cd_high = run!(_mm512_unpackhi_epi32, c, d);
        let upper = black_box(0b1010_1010);
        let [a, b] = Self::unpack_quads(upper, ab_low, cd_low);
        let [c, d] = Self::unpack_quads(upper, ab_high, cd_high);
        [a, b, c, d]
    }

    #[inline(always)]
    fn unzip(rows: [Self; 4]) -> [Self; 4] {
        let [a, b, c, d] = rows;
        let ab_low = run!(_mm512_shuffle_i32x4::<0x44>, a, b);
        let cd_low = run!(_mm512_shuffle_i32x4::<0x44>, c, d);
        let ab_high = run!(_mm512_shuffle_i32x4::<0xee>, a, b);
        let cd_high = run!(_mm512_shuffle_i32x4::<0xee>, c, d);
        [
            run!(_mm512_shuffle_i32x4::<0x88>, ab_low, cd_low),
            run!(_mm512_shuffle_i32x4::<0xdd>, ab_low, cd_low),
            run!(_mm512_shuffle_i32x4::<0x88>, ab_high, cd_high),
            run!(_mm512_shuffle_i32x4::<0xdd>, ab_high, cd_high),
        ]
    }

    #[inline(always)]
    fn keep(self, stream: &mut Stream<'_>, at: usize) {
        let place = stream.place(at, Self::BYTES);
        // SAFETY: 64 bytes of room are there, and a Zmm proves AVX-512 F.
        unsafe { _mm512_storeu_si512(place.cast(), self.0) };
    }

    #[inline(always)]
    fn first_row(self) -> [u64; 2] {
        // SAFETY: a Zmm proves AVX-512 F, which includes SSE4.1.
        let row = unsafe { _mm512_castsi512_si128(self.0) };
        // SAFETY: likewise.
        let low = unsafe { _mm_cvtsi128_si64(row) };
        // SAFETY: likewise.
        let high = unsafe { _mm_extract_epi64::<1>(row) };
        [low.cast_unsigned(), high.cast_unsigned()]
    }

    #[inline(always)]
    fn xor_into(self, window: &Window<'_>, at: usize) -> Self {
        let (src, dst) = window.pointers(at, Self::BYTES);
        // SAFETY: 64 bytes are there to read, and a Zmm proves AVX-512 F.
        let text = unsafe { _mm512_loadu_si512(src.cast()) };
        // SAFETY: a Zmm proves AVX-512 F.
        let text = unsafe { _mm512_xor_si512(text, self.0) };
        // SAFETY: 64 bytes are there to write.
        unsafe { _mm512_storeu_si512(dst.cast(), text) };
        Self(text)
    }
}

impl ChaCha20 for Avx512 {
    const ROW_SETS: &'static [usize] = &[2, 3, 4];
    const HEAD_SETS: &'static [usize] = &[1, 2];
    const HEAD_START: bool = true;
    const FREE_SPLATS: bool = true;
    const PAIRS: bool = true;
    const TAIL_SETS: &'static [usize] = &[1, 2];
}

impl Poly1305 for Avx512 {
    const SINGLY: usize = 192;
    type Short = Wide<Self, false>;
    type Long = Wide<Self, true>;
}

impl Multiply52 for Avx512 {
    type Lanes = Zmm;

    #[inline(always)]
    fn splat(self, x: u64) -> Zmm {
        // SAFETY: the token proves AVX-512 F.
        Zmm(unsafe { _mm512_set1_epi64(x.cast_signed()) })
    }

    #[inline(always)]
    fn first(self, x: u64) -> Zmm {
        // SAFETY: the token proves AVX-512 F, which includes SSE2.
        let x = unsafe { _mm_cvtsi64_si128(x.cast_signed()) };
        // SAFETY: the token proves AVX-512 F.
        Zmm(unsafe { _mm512_zextsi128_si512(x) })
    }

    #[inline(always)]
    fn load(self, blocks: Source<'_>) -> [Zmm; 2] {
        let (a, b) = (blocks.pointer(0, 64), blocks.pointer(64, 64));
        // SAFETY: 64 bytes are there, and the token proves AVX-512 F.
        let a = unsafe { _mm512_loadu_si512(a.cast()) };
        // SAFETY: likewise.
        let b = unsafe { _mm512_loadu_si512(b.cast()) };
        halves(Zmm(a), Zmm(b))
    }

    #[inline(always)]
    fn load_end(self, rest: Source<'_>, lengths: [u64; 2]) -> [Zmm; 2] {
        let first = rest.len().min(64);
        let second = rest.len() - first;
        let (a, b) = (rest.pointer(0, first), rest.pointer(first, second));
        // SAFETY: the masked bytes are there, and the token proves AVX-512 BW.
        let a = unsafe { _mm512_maskz_loadu_epi8(first_bytes(first), a.cast()) };
        // SAFETY: likewise.
        let b = unsafe { _mm512_maskz_loadu_epi8(first_bytes(second), b.cast()) };
        let [aad, text] = lengths.map(u64::cast_signed);
        // SAFETY: the token proves AVX-512 F.
        let lengths = unsafe { _mm_set_epi64x(text, aad) };
        // SAFETY: likewise.
        let b = unsafe { _mm512_inserti32x4::<3>(b, lengths) };
        halves(Zmm(a), Zmm(b))
    }
}

/// The low and the high quadwords of eight blocks.
#[inline(always)]
fn halves(a: Zmm, b: Zmm) -> [Zmm; 2] {
    [run!(_mm512_unpacklo_epi64, a, b), run!(_mm512_unpackhi_epi64, a, b)]
}

impl Lanes for Zmm {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        run!(_mm512_add_epi64, self, other)
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        run!(_mm512_and_si512, self, other)
    }

    #[inline(always)]
    fn shift_left<const N: u32>(self) -> Self {
        run!(_mm512_slli_epi64::<N>, self)
    }

    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        run!(_mm512_srli_epi64::<N>, self)
    }

    #[inline(always)]
    fn bits_from<const N: u32>(low: Self, high: Self) -> Self {
        // the intrinsic wants a const of another type
        const { assert!(N == 24 || N == 44) };
        match N {
            24 => run!(_mm512_shrdi_epi64::<24>, low, high),
            _ => run!(_mm512_shrdi_epi64::<44>, low, high),
        }
    }

    #[inline(always)]
    fn add_product_low(self, x: Self, y: Self) -> Self {
        run!(_mm512_madd52lo_epu64, self, x, y)
    }

    #[inline(always)]
    fn add_product_high(self, x: Self, y: Self) -> Self {
        run!(_mm512_madd52hi_epu64, self, x, y)
    }

    #[inline(always)]
    fn select<const MASK: u8>(self, other: Self) -> Self {
        // SAFETY: a Zmm proves AVX-512 F.
        Self(unsafe { _mm512_mask_mov_epi64(other.0, MASK, self.0) })
    }

    #[inline(always)]
    fn spread(self) -> Self {
        // SAFETY: a Zmm proves AVX-512 F.
        let first = unsafe { _mm512_castsi512_si128(self.0) };
        // SAFETY: likewise.
        Self(unsafe { _mm512_broadcastq_epi64(first) })
    }

    #[inline(always)]
    fn spread_lane(&self, n: usize) -> Self {
        let lane = (&raw const self.0).cast::<i64>().wrapping_add(n % 8);
        // SAFETY: this is one of the eight lanes.
        let lane = unsafe { *lane };
        // SAFETY: a Zmm proves AVX-512 F.
        Self(unsafe { _mm512_set1_epi64(lane) })
    }

    #[inline(always)]
    fn sum(self) -> u64 {
        // SAFETY: a Zmm proves AVX-512 F.
        unsafe { _mm512_reduce_add_epi64(self.0) }.cast_unsigned()
    }
}
