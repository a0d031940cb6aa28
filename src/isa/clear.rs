//! Zeroing what a kernel has left: keys and keystream that the compiler spilled to the dead stack, and
//! what is still in registers.
//!
//! A kernel's function tells how deep its frame is. Where it was called, a second function is called,
//! whose frame begins at the same place, and zeroes all of it: what lies where in it is the compiler's
//! choice, which changes with every version.

/// Assembly that zeroes the dead stack down to an address, and all registers that a call may change:
/// `zero!(address, store vector: its places in 64 bytes, what zeroes the vectors)`.
///
/// The stack pointer moves, so that nothing takes these writes for stray ones. The first store reaches
/// up to the caller's frame, the others fill aligned lines.
#[cfg(target_arch = "x86_64")]
macro_rules! zero {
    ($end:expr, $store:literal $vector:literal: $($at:literal)+, $($vectors:expr),+) => {
        if !cfg!(chapoly_fault = "no_wipe") {
            $crate::isa::clear::zero_baseline();
            core::arch::asm!(
                $($vectors,)+
                "mov rdx, rsp",
                "lea rcx, [rsp - 64]",
                "lea rsp, [rax - 128]",
                $(concat!($store, " [rcx + ", $at, "], ", $vector),)+
                "and rcx, -64",
                "2:",
                $(concat!($store, " [rcx + ", $at, "], ", $vector),)+
                $(concat!($store, " [rcx + ", $at, " - 64], ", $vector),)+
                "sub rcx, 128",
                "cmp rcx, rsp",
                "ja 2b",
                "mov rsp, rdx",
                "xor eax, eax",
                "xor ecx, ecx",
                "xor edx, edx",
                "xor esi, esi",
                "xor edi, edi",
                "xor r8d, r8d",
                "xor r9d, r9d",
                "xor r10d, r10d",
                "xor r11d, r11d",
                in("rax") $end,
                clobber_abi("sysv64"),
            );
        }
    };
}

/// `each!(instruction operands register: numbers)`: the instruction on each of the registers.
#[cfg(target_arch = "x86_64")]
macro_rules! each {
    ($instruction:literal 2 $register:literal: $($n:literal)+) => {
        concat!($($instruction, " ", $register, $n, ", ", $register, $n, "\n"),+)
    };
    ($instruction:literal 3 $register:literal: $($n:literal)+) => {
        concat!(
            $($instruction, " ", $register, $n, ", ", $register, $n, ", ", $register, $n, "\n"),+
        )
    };
}

#[cfg(target_arch = "x86_64")]
pub(super) use {each, zero};

/// Zeroes the vectors that all code may use because the whole crate is compiled for AVX or AVX-512.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn zero_baseline() {
    #[cfg(target_feature = "avx512f")]
    // SAFETY: the feature is enabled, and the registers are declared.
    unsafe {
        core::arch::asm!(
            each!("vpxord" 3 "zmm": 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25
                26 27 28 29 30 31),
            clobber_abi("sysv64"),
        );
    }
    #[cfg(all(target_feature = "avx", not(target_feature = "avx512f")))]
    // SAFETY: likewise.
    unsafe {
        core::arch::asm!(
            each!("vpxor" 3 "xmm": 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
            clobber_abi("sysv64"),
        );
    }
}

/// Where the frame of the function that this is inlined into ends, which calls no others (but for debug
/// assertions, whose closures are functions of their own).
#[inline(always)]
pub(super) fn stack_pointer() -> usize {
    let address: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mov {}, rsp", out(reg) address);
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        address = 0;
    }
    if cfg!(debug_assertions) { address.wrapping_sub(1024) } else { address }
}

/// For kernels without AVX: zeroes what one has left.
///
/// # Safety
/// To be called from where the kernel was called, whose frame ended at `end`.
#[inline(never)]
pub(super) unsafe fn clear(end: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86-64, and the stack down to `end` is dead.
    unsafe {
        zero!(end, "movups" "xmm0": 0 16 32 48,
            each!("pxor" 2 "xmm": 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15));
    }
    // without assembly: the stack alone, and not less than is needed
    #[cfg(not(target_arch = "x86_64"))]
    if !cfg!(chapoly_fault = "no_wipe") {
        let _ = end;
        core::hint::black_box(&mut [0u8; 4096]);
    }
}
