//! The fastest C libraries, where the machine has them: OpenSSL and Intel's ipsec-mb, by `dlopen`.
//!
//! Declared by hand from their headers, no more than is called. Debian's packages are `libssl3` and
//! `libipsec-mb1`.
#![allow(unsafe_code, reason = "foreign functions")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::{mem, ptr};
use std::sync::OnceLock;

use super::{Key, Nonce, Peer};

/// The address of `symbol` in `library`, if both exist. Libraries stay loaded.
fn address(library: &CStr, symbol: &CStr) -> Option<*mut c_void> {
    // SAFETY: both are C strings; these libraries' initialisers have no requirements.
    let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is open.
    let address = unsafe { libc::dlsym(handle, symbol.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Fields of a struct of function pointers, each looked up under its own name.
macro_rules! functions {
    ($name:ident in $library:literal { $($symbol:ident: fn($($arg:ty),*) -> $ret:ty,)* }) => {
        #[allow(non_snake_case, reason = "the library's names")]
        struct $name { $($symbol: unsafe extern "C" fn($($arg),*) -> $ret,)* }

        impl $name {
            fn load() -> Option<&'static Self> {
                static LIBRARY: OnceLock<Option<$name>> = OnceLock::new();
                LIBRARY.get_or_init(|| Some(Self { $($symbol: {
                    let name = concat!(stringify!($symbol), "\0");
                    let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
                    let address = address($library, name)?;
                    // SAFETY: the type is the header's declaration of this symbol.
                    unsafe { mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) -> $ret>(address) }
                },)* })).as_ref()
            }
        }
    };
}

functions!(Crypto in c"libcrypto.so.3" {
    EVP_chacha20_poly1305: fn() -> *const c_void,
    EVP_CIPHER_CTX_new: fn() -> *mut c_void,
    EVP_CIPHER_CTX_free: fn(*mut c_void) -> (),
    EVP_CIPHER_CTX_ctrl: fn(*mut c_void, c_int, c_int, *mut c_void) -> c_int,
    EVP_CipherInit_ex: fn(*mut c_void, *const c_void, *const c_void, *const u8, *const u8, c_int) -> c_int,
    EVP_CipherUpdate: fn(*mut c_void, *mut u8, *mut c_int, *const u8, c_int) -> c_int,
    EVP_CipherFinal_ex: fn(*mut c_void, *mut u8, *mut c_int) -> c_int,
});

/// OpenSSL 3's EVP interface with a context per direction, keyed once.
pub(crate) struct OpenSsl {
    lib: &'static Crypto,
    seal: *mut c_void,
    open: *mut c_void,
}

const GET_TAG: c_int = 0x10;
const SET_TAG: c_int = 0x11;

impl OpenSsl {
    pub(crate) fn installed() -> bool {
        Crypto::load().is_some()
    }

    /// One message on `ctx`; `tag` is read before the end (open) or written after it (seal).
    #[inline]
    fn message(
        &self,
        seal: bool,
        nonce: &Nonce,
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8; 16],
    ) -> bool {
        let (ctx, lib) = (if seal { self.seal } else { self.open }, self.lib);
        let (text, len) = (in_out.as_mut_ptr(), in_out.len() as c_int);
        let mut n = 0;
        // SAFETY: the context is alive, pointers and lengths are of live slices, a null output with
        // AAD is the documented way to pass it, and in place is allowed.
        #[allow(clippy::multiple_unsafe_ops_per_block, reason = "one transaction")]
        unsafe {
            let enc = c_int::from(seal);
            (lib.EVP_CipherInit_ex)(
                ctx,
                ptr::null(),
                ptr::null(),
                ptr::null(),
                nonce.as_ptr(),
                enc,
            );
            if !seal {
                (lib.EVP_CIPHER_CTX_ctrl)(ctx, SET_TAG, 16, tag.as_mut_ptr().cast());
            }
            (lib.EVP_CipherUpdate)(ctx, ptr::null_mut(), &mut n, aad.as_ptr(), aad.len() as c_int);
            if len > 0 {
                (lib.EVP_CipherUpdate)(ctx, text, &mut n, text, len);
            }
            let ok = (lib.EVP_CipherFinal_ex)(ctx, text, &mut n);
            if seal {
                (lib.EVP_CIPHER_CTX_ctrl)(ctx, GET_TAG, 16, tag.as_mut_ptr().cast());
            }
            ok == 1
        }
    }
}

impl Peer for OpenSsl {
    fn new(key: &Key) -> Self {
        let lib = Crypto::load().expect("OpenSsl::installed");
        let context = |enc: c_int| {
            // SAFETY: a new context, a cipher that the library owns, a key of 32 bytes.
            #[allow(clippy::multiple_unsafe_ops_per_block, reason = "one transaction")]
            unsafe {
                let ctx = (lib.EVP_CIPHER_CTX_new)();
                let cipher = (lib.EVP_chacha20_poly1305)();
                (lib.EVP_CipherInit_ex)(ctx, cipher, ptr::null(), key.as_ptr(), ptr::null(), enc);
                ctx
            }
        };
        Self { lib, seal: context(1), open: context(0) }
    }

    fn rekey(&mut self, key: &Key) {
        // SAFETY: a live context with its cipher set, a key of 32 bytes.
        unsafe {
            let null = ptr::null();
            (self.lib.EVP_CipherInit_ex)(self.seal, null, null, key.as_ptr(), ptr::null(), 1)
        };
    }

    #[inline]
    fn seal(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8]) -> [u8; 16] {
        let mut tag = [0; 16];
        self.message(true, nonce, aad, in_out, &mut tag);
        tag
    }

    #[inline]
    fn open(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8], tag: &[u8; 16]) -> bool {
        self.message(false, nonce, aad, in_out, &mut tag.clone())
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        for ctx in [self.seal, self.open] {
            // SAFETY: made by `EVP_CIPHER_CTX_new`, freed once.
            unsafe { (self.lib.EVP_CIPHER_CTX_free)(ctx) };
        }
    }
}

functions!(IpsecMb in c"libIPSec_MB.so.1" {
    alloc_mb_mgr: fn(u64) -> *mut Manager,
    init_mb_mgr_auto: fn(*mut Manager, *mut c_int) -> (),
    free_mb_mgr: fn(*mut Manager) -> (),
    imb_get_version_str: fn() -> *const c_char,
});

/// What `IMB_MGR` of version 1.3 is up to the last function that is called here.
#[repr(C)]
struct Manager {
    head: [u64; 8],
    get_next_job: unsafe extern "C" fn(*mut Self) -> *mut Job,
    submit_job: usize,
    submit_job_nocheck: unsafe extern "C" fn(*mut Self) -> *mut Job,
    others: [usize; 104],
    init: unsafe extern "C" fn(*const u8, *mut Context, *const u8, *const u8, u64) -> c_int,
    enc_update: unsafe extern "C" fn(*const u8, *mut Context, *mut u8, *const u8, u64) -> c_int,
    dec_update: unsafe extern "C" fn(*const u8, *mut Context, *mut u8, *const u8, u64) -> c_int,
    finalize: unsafe extern "C" fn(*mut Context, *mut u8, u64) -> c_int,
}

/// `struct chacha20_poly1305_context_data`, which only the library looks into.
#[repr(C)]
struct Context([u64; 24]);

/// `IMB_JOB` of version 1.3.
#[repr(C)]
struct Job {
    enc_keys: *const u8,
    dec_keys: *const u8,
    key_len: u64,
    src: *const u8,
    dst: *mut u8,
    cipher_start: u64,
    cipher_len: u64,
    hash_start: u64,
    hash_len: u64,
    iv: *const u8,
    iv_len: u64,
    tag: *mut u8,
    tag_len: u64,
    aad: *const u8,
    aad_len: u64,
    context: *mut Context,
    status: c_int,
    cipher_mode: c_int,
    cipher_direction: c_int,
    hash_alg: c_int,
    chain_order: c_int,
}

const CIPHER_CHACHA20_POLY1305: c_int = 19;
const AUTH_CHACHA20_POLY1305: c_int = 29;
const ENCRYPT: c_int = 1;
const DECRYPT: c_int = 2;
const CIPHER_HASH: c_int = 1;
const HASH_CIPHER: c_int = 2;
const COMPLETED: c_int = 3;

/// Intel's ipsec-mb by its job interface (`JOB`) or by its direct calls.
pub(crate) struct Ipsec<const JOB: bool> {
    lib: &'static IpsecMb,
    manager: *mut Manager,
    context: Context,
    key: Key,
}

impl<const JOB: bool> Ipsec<JOB> {
    /// The structs above are those of version 1.3 and no other.
    pub(crate) fn installed() -> bool {
        IpsecMb::load().is_some_and(|lib| {
            // SAFETY: no arguments.
            let version = unsafe { (lib.imb_get_version_str)() };
            // SAFETY: a C string that the library owns.
            let version = unsafe { CStr::from_ptr(version) };
            version.to_bytes().starts_with(b"v1.3.") || version.to_bytes().starts_with(b"1.3.")
        })
    }

    #[inline]
    fn message(&mut self, seal: bool, nonce: &Nonce, aad: &[u8], in_out: &mut [u8]) -> [u8; 16] {
        let mut tag = [0; 16];
        let (text, len) = (in_out.as_mut_ptr(), in_out.len() as u64);
        let (key, aad, aad_len) = (self.key.as_ptr(), aad.as_ptr(), aad.len() as u64);
        // SAFETY: the manager is alive, pointers and lengths are of live slices, in place is allowed.
        #[allow(clippy::multiple_unsafe_ops_per_block, reason = "one transaction")]
        unsafe {
            let manager = &*self.manager;
            if !JOB {
                let update = if seal { manager.enc_update } else { manager.dec_update };
                (manager.init)(key, &mut self.context, nonce.as_ptr(), aad, aad_len);
                update(key, &mut self.context, text, text, len);
                (manager.finalize)(&mut self.context, tag.as_mut_ptr(), 16);
                return tag;
            }
            let job = &mut *(manager.get_next_job)(self.manager);
            job.cipher_mode = CIPHER_CHACHA20_POLY1305;
            job.hash_alg = AUTH_CHACHA20_POLY1305;
            job.cipher_direction = if seal { ENCRYPT } else { DECRYPT };
            job.chain_order = if seal { CIPHER_HASH } else { HASH_CIPHER };
            (job.enc_keys, job.dec_keys, job.key_len) = (key, key, 32);
            (job.src, job.dst) = (text, text);
            (job.cipher_start, job.cipher_len) = (0, len);
            (job.hash_start, job.hash_len) = (0, len);
            (job.iv, job.iv_len) = (nonce.as_ptr(), 12);
            (job.tag, job.tag_len) = (tag.as_mut_ptr(), 16);
            (job.aad, job.aad_len) = (aad, aad_len);
            let done = (manager.submit_job_nocheck)(self.manager);
            assert!(!done.is_null() && (*done).status == COMPLETED, "the job is done at once");
        }
        tag
    }
}

impl<const JOB: bool> Peer for Ipsec<JOB> {
    fn new(key: &Key) -> Self {
        let lib = IpsecMb::load().expect("Ipsec::installed");
        // SAFETY: no flags.
        let manager = unsafe { (lib.alloc_mb_mgr)(0) };
        assert!(!manager.is_null(), "memory for ipsec-mb");
        // SAFETY: a fresh manager; the null pointer says that the architecture is not asked for.
        unsafe { (lib.init_mb_mgr_auto)(manager, ptr::null_mut()) };
        Self { lib, manager, context: Context([0; 24]), key: *key }
    }

    fn rekey(&mut self, key: &Key) {
        self.key = *key;
    }

    #[inline]
    fn seal(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8]) -> [u8; 16] {
        self.message(true, nonce, aad, in_out)
    }

    /// The comparison is the caller's part in this library: here a constant-time one.
    #[inline]
    fn open(&mut self, nonce: &Nonce, aad: &[u8], in_out: &mut [u8], tag: &[u8; 16]) -> bool {
        let computed = self.message(false, nonce, aad, in_out);
        let difference = u128::from_ne_bytes(computed) ^ u128::from_ne_bytes(*tag);
        difference == 0
    }
}

impl<const JOB: bool> Drop for Ipsec<JOB> {
    fn drop(&mut self) {
        // SAFETY: made by `alloc_mb_mgr`, freed once.
        unsafe { (self.lib.free_mb_mgr)(self.manager) };
    }
}
