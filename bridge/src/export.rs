//! The exported functions. Contracts are in `tandem_bridge.h`.

mod grammars;
mod templates;
mod tokenizers;

use crate::ffi::{self, Ids, Text};

/// # Safety
/// `len` is writable.
#[no_mangle]
pub unsafe extern "C" fn tb_last_error(len: *mut usize) -> *const u8 {
    let (data, size) = ffi::last_error();
    unsafe { *len = size };
    data
}

/// # Safety
/// `text` came from this library and is not used again.
#[no_mangle]
pub unsafe extern "C" fn tb_text_free(text: Text) {
    unsafe { text.free() }
}

/// # Safety
/// `ids` came from this library and is not used again.
#[no_mangle]
pub unsafe extern "C" fn tb_ids_free(ids: Ids) {
    unsafe { ids.free() }
}

/// For the test that panics stay inside.
#[no_mangle]
pub extern "C" fn tb_test_panic() -> i32 {
    ffi::guard_code(|| panic!("asked to"))
}
