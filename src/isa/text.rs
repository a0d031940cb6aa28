//! The memory that a kernel works on.
//!
//! In place, the text to read and the text to write are the same bytes, which two references could
//! not express; so that one kernel serves both ways, [`Text`] and [`Window`] carry a pointer to read
//! from and one to write to. They are made from references only, whose lifetime they keep, and every
//! access is checked against their length (in a tile by one comparison for all). No input can fail such
//! a check: lengths have been compared before a kernel begins, and it derives its offsets from them. It
//! is there so that a mistake in a kernel stops the program instead of touching foreign memory.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

/// Bytes to read, which the owner of the borrow may meanwhile overwrite through its [`Text`].
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    start: *const u8,
    len: usize,
    _borrow: PhantomData<&'a [u8]>,
}

impl<'a> From<&'a [u8]> for Source<'a> {
    #[inline(always)]
    fn from(bytes: &'a [u8]) -> Self {
        Self { start: bytes.as_ptr(), len: bytes.len(), _borrow: PhantomData }
    }
}

impl Source<'_> {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes from `from` to `to`.
    #[inline(always)]
    pub(crate) fn range(self, from: usize, to: usize) -> Self {
        assert!(from <= to && to <= self.len);
        // SAFETY: `from` is at most the length.
        let start = unsafe { self.start.add(from) };
        Self { start, len: to - from, _borrow: PhantomData }
    }

    /// `N` bytes at `at`.
    #[inline(always)]
    pub(crate) fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        // SAFETY: `pointer` has checked that `N` bytes from there on are ours to read.
        unsafe { self.pointer(at, N).cast::<[u8; N]>().read_unaligned() }
    }

    /// The block that begins at `at`, filled up with zeros where the source ends within it.
    #[inline(always)]
    pub(crate) fn padded_block(&self, at: usize) -> [u8; 16] {
        let mut rest = self.len - at;
        if rest >= 16 {
            return self.array(at);
        }
        // from the end towards the front, so that each read is shifted in below the last
        let mut block = 0u128;
        let mut end = self.len;
        if rest & 1 != 0 {
            end -= 1;
            block = u128::from(self.array::<1>(end)[0]);
        }
        if rest & 2 != 0 {
            end -= 2;
            block = block << 16 | u128::from(u16::from_le_bytes(self.array(end)));
        }
        if rest & 4 != 0 {
            end -= 4;
            block = block << 32 | u128::from(u32::from_le_bytes(self.array(end)));
        }
        rest &= 8;
        if rest != 0 {
            end -= 8;
            block = block << 64 | u128::from(u64::from_le_bytes(self.array(end)));
        }
        debug_assert_eq!(end, at);
        block.to_le_bytes()
    }

    /// The address of `len` bytes at `at`.
    #[inline(always)]
    pub(super) fn pointer(&self, at: usize, len: usize) -> *const u8 {
        assert!(at <= self.len && len <= self.len - at);
        // SAFETY: within the source, as just checked.
        unsafe { self.start.add(at) }
    }
}

/// A message: pieces to read one after the other, and one output.
pub(crate) struct Text<'a> {
    /// What is left of the piece being read.
    piece: Source<'a>,
    chunks: &'a [&'a [u8]],
    last: &'a [u8],
    /// Bytes of the chunks after `piece` that belong to the message.
    chunked: usize,
    output: *mut u8,
    written: usize,
    len: usize,
    _borrow: PhantomData<&'a mut [u8]>,
}

impl<'a> Text<'a> {
    /// A text that is overwritten by its transform.
    #[inline(always)]
    pub(crate) fn in_place(text: &'a mut [u8]) -> Self {
        let output = text.as_mut_ptr();
        let piece = Source { start: output, len: text.len(), _borrow: PhantomData };
        Self::new(piece, &[], 0, &[], output, text.len())
    }

    /// `source`, to be transformed to `output`, which is as long.
    #[inline(always)]
    pub(crate) fn apart(source: &'a [u8], output: &'a mut [u8]) -> Self {
        Self::new(source.into(), &[], 0, &[], output.as_mut_ptr(), output.len())
    }

    /// The bytes `start..end` of the concatenated `chunks`, then `last`, to be transformed to `output`.
    ///
    /// The message ends where the pieces or the output end, whichever is first.
    #[inline(always)]
    pub(crate) fn gather(
        chunks: &'a [&'a [u8]],
        start: usize,
        end: usize,
        last: &'a [u8],
        output: &'a mut [u8],
    ) -> Self {
        let mut skip = start;
        let mut chunks = chunks;
        let mut piece: &[u8] = &[];
        let mut chunked = end.saturating_sub(start);
        while let [first, rest @ ..] = chunks {
            chunks = rest;
            if let Some(tail) = first.get(skip..) {
                piece = tail.get(..chunked).unwrap_or(tail);
                chunked -= piece.len();
                break;
            }
            skip -= first.len();
        }
        Self::new(piece.into(), chunks, chunked, last, output.as_mut_ptr(), output.len())
    }

    #[inline(always)]
    fn new(
        piece: Source<'a>,
        chunks: &'a [&'a [u8]],
        chunked: usize,
        last: &'a [u8],
        output: *mut u8,
        len: usize,
    ) -> Self {
        Self { piece, chunks, last, chunked, output, written: 0, len, _borrow: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes transformed so far.
    #[inline(always)]
    pub(crate) fn written(&self) -> usize {
        self.written
    }

    /// The output, of which only what has been written is the message's.
    #[inline(always)]
    pub(crate) fn output(&self) -> Source<'a> {
        Source { start: self.output, len: self.len, _borrow: PhantomData }
    }

    /// What is left of the piece being read: all of a text in place that has not been begun.
    #[inline(always)]
    pub(crate) fn piece(&self) -> Source<'a> {
        self.piece
    }

    /// The next `len` bytes, if they lie in one piece.
    #[inline(always)]
    pub(crate) fn whole(&mut self, len: usize) -> Option<Window<'a>> {
        if self.piece.len < len {
            return None;
        }
        Some(self.take(len))
    }

    /// The next bytes that lie in one piece, at most `max` of them; none at the end of the message.
    #[inline(always)]
    pub(crate) fn some(&mut self, max: usize) -> Option<Window<'a>> {
        if self.piece.len == 0 && max != 0 {
            self.next_piece();
        }
        let len = self.piece.len.min(max);
        (len != 0).then(|| self.take(len))
    }

    /// The address to write the next `len` bytes to.
    #[inline(always)]
    pub(super) fn place(&self, len: usize) -> *mut u8 {
        assert!(len <= self.len - self.written);
        // SAFETY: `written` never passes the length of the output.
        unsafe { self.output.add(self.written) }
    }

    /// Goes to the next piece that is not empty, if there is one.
    #[inline(always)]
    fn next_piece(&mut self) {
        while self.piece.len == 0 {
            if let [first, rest @ ..] = self.chunks
                && self.chunked != 0
            {
                self.chunks = rest;
                let piece = first.get(..self.chunked).unwrap_or(first);
                self.chunked -= piece.len();
                self.piece = piece.into();
            } else if self.last.is_empty() {
                return;
            } else {
                self.piece = self.last.into();
                self.last = &[];
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, len: usize) -> Window<'a> {
        assert!(len <= self.piece.len);
        let src = self.piece.start;
        let dst = self.place(len);
        self.piece = self.piece.range(len, self.piece.len);
        self.written += len;
        Window { src, dst, len, _borrow: PhantomData }
    }
}

/// Bytes to be transformed: read here, written there, or both at one place.
pub(crate) struct Window<'a> {
    src: *const u8,
    dst: *mut u8,
    len: usize,
    _borrow: PhantomData<&'a mut [u8]>,
}

impl Window<'_> {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// XORs `mask` into the `N` bytes at `at`, and tells what was written.
    #[inline(always)]
    pub(crate) fn xor<const N: usize>(&self, at: usize, mask: [u8; N]) -> [u8; N] {
        let (src, dst) = self.pointers(at, N);
        // SAFETY: `pointers` has checked that `N` bytes are there to read.
        let mut bytes = unsafe { src.cast::<[u8; N]>().read_unaligned() };
        for (byte, mask) in bytes.iter_mut().zip(mask) {
            *byte ^= mask;
        }
        // SAFETY: and to write.
        unsafe { dst.cast::<[u8; N]>().write_unaligned(bytes) };
        bytes
    }

    /// The addresses to read and to write `len` bytes at `at`.
    #[inline(always)]
    pub(super) fn pointers(&self, at: usize, len: usize) -> (*const u8, *mut u8) {
        assert!(at <= self.len && len <= self.len - at);
        // SAFETY: within the window, as just checked.
        let src = unsafe { self.src.add(at) };
        // SAFETY: likewise.
        let dst = unsafe { self.dst.add(at) };
        (src, dst)
    }
}

/// Room for the keystream of `N` vectors, uninitialised: clearing it would cost a short message a tenth
/// of its time.
#[repr(C, align(64))]
pub(crate) struct Room<W, const N: usize>([MaybeUninit<W>; N]);

impl<W: Copy, const N: usize> Room<W, N> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self([MaybeUninit::uninit(); N])
    }

    #[inline(always)]
    pub(crate) fn stream(&mut self) -> Stream<'_> {
        let start = self.0.as_mut_ptr().cast();
        Stream { start, room: N * size_of::<W>(), written: 0, _borrow: PhantomData }
    }
}

/// Keystream kept in memory: the first blocks, and those of a text that ends or changes pieces within.
///
/// (The count is kept apart from the bytes, or the compiler clears them all after all.)
pub(crate) struct Stream<'a> {
    start: *mut u8,
    room: usize,
    written: usize,
    _borrow: PhantomData<&'a mut [u8]>,
}

impl Stream<'_> {
    /// All that has been written.
    #[inline(always)]
    pub(crate) fn source(&self) -> Source<'_> {
        Source { start: self.start, len: self.written, _borrow: PhantomData }
    }

    /// `N` bytes at `at`, which must have been written.
    #[inline(always)]
    pub(crate) fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        // SAFETY: `pointer` has checked that `N` written bytes are there.
        unsafe { self.pointer(at, N).cast::<[u8; N]>().read_unaligned() }
    }

    /// The address of `len` written bytes at `at`.
    #[inline(always)]
    pub(super) fn pointer(&self, at: usize, len: usize) -> *const u8 {
        assert!(at <= self.written && len <= self.written - at);
        // SAFETY: within the room, as just checked.
        unsafe { self.start.add(at) }
    }

    /// Writes `bytes` at `at`, which is not behind the end of what has been written.
    #[inline(always)]
    pub(crate) fn write<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        // SAFETY: `place` has checked that `N` bytes of room are there.
        unsafe { self.place(at, N).cast::<[u8; N]>().write_unaligned(bytes) };
    }

    /// The address for `len` bytes at `at`, which the caller writes now.
    #[inline(always)]
    pub(super) fn place(&mut self, at: usize, len: usize) -> *mut u8 {
        assert!(at <= self.written && len <= self.room - at);
        self.written = self.written.max(at + len);
        // SAFETY: within the room, as just checked.
        unsafe { self.start.add(at) }
    }
}

#[cfg(test)]
mod tests;
