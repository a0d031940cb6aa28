//! The rounds of eight blocks with Poly1305 woven in, in assembly.
//!
//! The compiler spills more than it must and gathers what should be spread: the vector units work on
//! ChaCha20 while the multiplier works on Poly1305, and only a fine mixture keeps both busy. Sixteen
//! vectors of state and two for rotations are two more than there are, so two of row `c` wait in
//! memory while two quarter rounds work on the other two.

use core::arch::asm;
use core::arch::x86_64::__m256i;

use crate::isa::text::Source;

/// Blocks that are absorbed in one double round.
pub(super) const BLOCKS: usize = 4;

/// What the assembly finds in memory.
#[repr(C, align(32))]
pub(super) struct Memory {
    /// The two vectors of row `c` that are not worked on; at first the third and the fourth.
    c: [[__m256i; 2]; 2],
    left_16: [u8; 32],
    left_8: [u8; 32],
    /// `r[0]`, `r[1]`, and `r[1] * 5 / 4`.
    r: [u64; 3],
    /// Double rounds to go, with Poly1305 and without.
    with: u64,
    without: u64,
}

/// `x += y; z ^= x`
macro_rules! add_xor {
    ($x:literal $y:literal $z:literal) => {
        concat!(
            concat!("vpaddd ymm", $x, ", ymm", $x, ", ymm", $y, "\n"),
            concat!("vpxor ymm", $z, ", ymm", $z, ", ymm", $x, "\n"),
        )
    };
}

/// Rotates `x` by bytes, which the mask at `$mask` tells.
macro_rules! rotate_bytes {
    ($x:literal $mask:literal) => {
        concat!("vpshufb ymm", $x, ", ymm", $x, ", ymmword ptr [{memory} + ", $mask, "]\n")
    };
}

/// Rotates `x` by `$left` bits with the help of `t`.
macro_rules! rotate_bits {
    ($x:literal $t:literal $left:literal $right:literal) => {
        concat!(
            concat!("vpslld ymm", $t, ", ymm", $x, ", ", $left, "\n"),
            concat!("vpsrld ymm", $x, ", ymm", $x, ", ", $right, "\n"),
            concat!("vpor ymm", $x, ", ymm", $x, ", ymm", $t, "\n"),
        )
    };
}

/// Two quarter rounds (RFC 8439 section 2.1) on rows in registers, row `c` in 8 and 9, each line
/// followed by a piece of Poly1305.
macro_rules! quarter_rounds {
    ($a:literal $b:literal $d:literal, $e:literal $f:literal $h:literal;
     $p0:ident $p1:ident $p2:ident $p3:ident) => {
        concat!(
            add_xor!($a $b $d),
            add_xor!($e $f $h),
            rotate_bytes!($d 128),
            rotate_bytes!($h 128),
            $p0!(),
            add_xor!(8 $d $b),
            add_xor!(9 $h $f),
            rotate_bits!($b 10 12 20),
            rotate_bits!($f 11 12 20),
            $p1!(),
            add_xor!($a $b $d),
            add_xor!($e $f $h),
            rotate_bytes!($d 160),
            rotate_bytes!($h 160),
            $p2!(),
            add_xor!(8 $d $b),
            add_xor!(9 $h $f),
            rotate_bits!($b 10 7 25),
            rotate_bits!($f 11 7 25),
            $p3!(),
        )
    };
}

/// Puts the two vectors of row `c` at `$to`, and takes the two at `$from`.
macro_rules! swap_c {
    ($to:literal $from:literal) => {
        concat!(
            concat!("vmovdqa ymmword ptr [{memory} + ", $to, "], ymm8\n"),
            concat!("vmovdqa ymmword ptr [{memory} + ", $to, " + 32], ymm9\n"),
            concat!("vmovdqa ymm8, ymmword ptr [{memory} + ", $from, "]\n"),
            concat!("vmovdqa ymm9, ymmword ptr [{memory} + ", $from, " + 32]\n"),
        )
    };
}

/// Column round and diagonal round, with a Poly1305 block in each half of each.
macro_rules! double_round {
    ($multiply:ident $top:ident ($n0:ident $n1:ident $n2:ident $n3:ident) $fold:ident) => {
        concat!(
            quarter_rounds!(0 4 12, 1 5 13; $multiply $top $n0 $fold),
            swap_c!(0 64),
            quarter_rounds!(2 6 14, 3 7 15; $multiply $top $n1 $fold),
            quarter_rounds!(0 5 15, 1 6 12; $multiply $top $n2 $fold),
            swap_c!(64 0),
            quarter_rounds!(2 7 13, 3 4 14; $multiply $top $n3 $fold),
        )
    };
}

macro_rules! nothing {
    () => {
        ""
    };
}

/// `h += block + 2^128`, with `h[0]` in rdx
macro_rules! first {
    () => {
        "add rdx, qword ptr [{block}]
        adc {h1}, qword ptr [{block} + 8]
        adc {h2}, 1
        "
    };
}

/// `d0 = h[0] * r[0]`, `d1 = h[0] * r[1]`, `e1 = h[1] * r[0]` with its high half in `h1`,
/// `d2 = h[2] * r[0]`
///
/// First what decides how much is folded: the next block waits for it.
macro_rules! multiply {
    () => {
        "mulx {d0_high}, {d0}, qword ptr [{memory} + 192]
        mulx {d1_high}, {d1}, qword ptr [{memory} + 200]
        mov rdx, {h1}
        mulx {h1}, {e1}, qword ptr [{memory} + 192]
        mov {d2}, {h2}
        imul {d2}, qword ptr [{memory} + 192]
        "
    };
}

/// `d1 += e1`, with what passes 2^128 in `d2`; `h2 = h[2] * (r[1] * 5 / 4)`
macro_rules! top {
    () => {
        "add {d2}, {d1_high}
        add {d1}, {e1}
        adc {d2}, {h1}
        imul {h2}, qword ptr [{memory} + 208]
        "
    };
}

/// Adds the next block, which is multiplied a block later, and goes on with [`rest`]. `d1_high` counts for
/// the next `h[2]`: that a block is a whole one, and carries that come too late to be folded.
macro_rules! next {
    ($at:literal) => {
        concat!(
            "mov {d1_high:e}, 1\n",
            concat!("add {d0}, qword ptr [{block} + ", $at, "]\n"),
            concat!("adc {d0_high}, qword ptr [{block} + ", $at, " + 8]\n"),
            "adc {d1_high}, 0\n",
            rest!(),
        )
    };
}

/// `d0_high += h2`, `e0 = h[1] * (r[1] * 5 / 4)`, `rdx = d2 / 4`
macro_rules! rest {
    () => {
        "add {d0_high}, {h2}
        adc {d1_high}, 0
        mulx {e0_high}, {e0}, qword ptr [{memory} + 208]
        mov rdx, {d2}
        shr rdx, 2
        "
    };
}

macro_rules! next_1 {
    () => {
        next!(16)
    };
}

macro_rules! next_2 {
    () => {
        next!(32)
    };
}

macro_rules! next_3 {
    () => {
        next!(48)
    };
}

/// The next block may not be there yet.
macro_rules! no_next {
    () => {
        concat!("xor {d1_high:e}, {d1_high:e}\nadd {block}, 64\n", rest!())
    };
}

/// `h` is the sum of all; of `d2`, what lies above 2^130 is taken off and counts five times.
macro_rules! fold {
    () => {
        "mov {h2}, {d2}
        and {h2:e}, 3
        add {d0}, {e0}
        adc {d0_high}, {e0_high}
        adc {d1_high}, 0
        and {d2}, -4
        add rdx, {d2}
        add {d1}, {d0_high}
        adc {d1_high}, 0
        add {h2}, {d1_high}
        add rdx, {d0}
        adc {d1}, 0
        adc {h2}, 0
        mov {h1}, {d1}
        "
    };
}

/// `count` double rounds on `v`, and meanwhile `blocks`, a multiple of [`BLOCKS`] and at most `count`
/// times as many, are absorbed into `h`, multiplied by `r` with `r[2] = r[1] * 5 / 4`.
///
/// `h[2]` is at most 6 at the beginning, so 8 with the first block, and 5 after any blocks. Between them
/// it is at most 7: two bits of `d2`, the next block's bit, a carry of the four that `d0_high` takes, for
/// their sum is below 2^65, one of `d1`, one of the fold. So its products fit 64 bits, as in `Scalar`.
#[target_feature(enable = "avx2,bmi2")]
#[inline]
pub(super) fn rounds(
    v: &mut [__m256i; 16],
    count: usize,
    h: &mut [u64; 3],
    r: [u64; 3],
    blocks: Source<'_>,
    left_16: [u8; 32],
    left_8: [u8; 32],
) {
    let with = blocks.len() / (16 * BLOCKS);
    // `lend` is asked for no more; were it more, `without` would pass zero
    assert!(with <= count);
    let mut memory = Memory {
        c: [[v[8], v[9]], [v[10], v[11]]],
        left_16,
        left_8,
        r,
        with: with as u64,
        without: (count - with) as u64,
    };
    // SAFETY: the features are enabled; `with` times `BLOCKS` blocks are read from where they are;
    // `memory` outlives the block, and nothing else is touched.
    unsafe {
        asm!(
            "cmp qword ptr [{memory} + 216], 0",
            "je 3f",
            "2:",
            first!(),
            double_round!(multiply top (next_1 next_2 next_3 no_next) fold),
            "dec qword ptr [{memory} + 216]",
            "jnz 2b",
            "3:",
            "cmp qword ptr [{memory} + 224], 0",
            "je 5f",
            "4:",
            double_round!(nothing nothing (nothing nothing nothing nothing) nothing),
            "dec qword ptr [{memory} + 224]",
            "jnz 4b",
            "5:",
            memory = in(reg) &raw mut memory,
            block = inout(reg) blocks.pointer(0, with * 16 * BLOCKS) => _,
            inout("rdx") h[0],
            h1 = inout(reg) h[1],
            h2 = inout(reg) h[2],
            d0 = out(reg) _,
            d0_high = out(reg) _,
            d1 = out(reg) _,
            d1_high = out(reg) _,
            d2 = out(reg) _,
            e0 = out(reg) _,
            e0_high = out(reg) _,
            e1 = out(reg) _,
            inout("ymm0") v[0],
            inout("ymm1") v[1],
            inout("ymm2") v[2],
            inout("ymm3") v[3],
            inout("ymm4") v[4],
            inout("ymm5") v[5],
            inout("ymm6") v[6],
            inout("ymm7") v[7],
            inout("ymm8") v[8],
            inout("ymm9") v[9],
            out("ymm10") _,
            out("ymm11") _,
            inout("ymm12") v[12],
            inout("ymm13") v[13],
            inout("ymm14") v[14],
            inout("ymm15") v[15],
            options(nostack),
        );
    }
    [v[10], v[11]] = memory.c[1];
}
