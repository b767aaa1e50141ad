//! What every export shares: panic guard, last error, buffers that cross the border.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};

pub const OK: i32 = 0;
/// The call failed; the message says why.
pub const FAILED: i32 = -1;
/// A panic was caught; the handle it happened in must be freed.
pub const PANICKED: i32 = -2;
/// A template refused the conversation with a message of its own.
pub const RAISED: i32 = -3;

/// A failure on its way to the caller.
pub struct Failure {
    pub code: i32,
    pub message: String,
}

impl<T: std::fmt::Display> From<T> for Failure {
    fn from(error: T) -> Self {
        Failure {
            code: FAILED,
            message: error.to_string(),
        }
    }
}

pub type Fallible<T> = Result<T, Failure>;

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

pub fn set_last_error(message: String) {
    LAST_ERROR.with(|slot| *slot.borrow_mut() = message);
}

/// The message of this thread's last failure; valid until its next failing call.
pub fn last_error() -> (*const u8, usize) {
    LAST_ERROR.with(|slot| {
        let text = slot.borrow();
        (text.as_ptr(), text.len())
    })
}

fn panic_text(payload: Box<dyn Any + Send>) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return format!("panic: {text}");
    }
    match payload.downcast_ref::<String>() {
        Some(text) => format!("panic: {text}"),
        None => "panic".to_string(),
    }
}

/// Runs a body that answers with a non-negative number; failures and panics become codes.
pub fn guard(body: impl FnOnce() -> Fallible<i64>) -> i64 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => {
            set_last_error(failure.message);
            i64::from(failure.code)
        }
        Err(payload) => {
            set_last_error(panic_text(payload));
            i64::from(PANICKED)
        }
    }
}

/// The same for exports that return only a code.
pub fn guard_code(body: impl FnOnce() -> Fallible<()>) -> i32 {
    guard(|| body().map(|()| i64::from(OK))) as i32
}

/// Frees a handle; null is fine.
///
/// # Safety
/// `handle` came from `Box::into_raw` and is not used again.
pub unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        let result = catch_unwind(AssertUnwindSafe(|| drop(unsafe { Box::from_raw(handle) })));
        if let Err(payload) = result {
            set_last_error(panic_text(payload));
        }
    }
}

/// Bytes borrowed from the caller for one call.
///
/// # Safety
/// `data` points to `len` readable bytes, or `len` is 0.
pub unsafe fn bytes<'a>(data: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(data, len) }
}

/// The same as UTF-8 text.
///
/// # Safety
/// As `bytes`.
pub unsafe fn text<'a>(data: *const u8, len: usize) -> Fallible<&'a str> {
    std::str::from_utf8(unsafe { bytes(data, len) })
        .map_err(|error| Failure::from(format!("not UTF-8: {error}")))
}

/// Token ids borrowed from the caller for one call.
///
/// # Safety
/// `data` points to `count` readable ids, or `count` is 0.
pub unsafe fn ids<'a>(data: *const u32, count: usize) -> &'a [u32] {
    if count == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(data, count) }
}

/// Text owned by the caller; freed with `tb_text_free`.
#[repr(C)]
pub struct Text {
    data: *mut u8,
    len: usize,
    cap: usize,
}

impl Text {
    pub fn new(text: String) -> Text {
        let mut vector = std::mem::ManuallyDrop::new(text.into_bytes());
        Text {
            data: vector.as_mut_ptr(),
            len: vector.len(),
            cap: vector.capacity(),
        }
    }

    /// # Safety
    /// Made by `new`, and not used again.
    pub unsafe fn free(self) {
        if !self.data.is_null() {
            drop(unsafe { Vec::from_raw_parts(self.data, self.len, self.cap) });
        }
    }
}

/// Token ids owned by the caller; freed with `tb_ids_free`.
#[repr(C)]
pub struct Ids {
    data: *mut u32,
    len: usize,
    cap: usize,
}

impl Ids {
    pub fn new(ids: Vec<u32>) -> Ids {
        let mut vector = std::mem::ManuallyDrop::new(ids);
        Ids {
            data: vector.as_mut_ptr(),
            len: vector.len(),
            cap: vector.capacity(),
        }
    }

    /// # Safety
    /// Made by `new`, and not used again.
    pub unsafe fn free(self) {
        if !self.data.is_null() {
            drop(unsafe { Vec::from_raw_parts(self.data, self.len, self.cap) });
        }
    }
}
