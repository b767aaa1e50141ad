//! Exports of the tokenizer.

use std::sync::Arc;

use crate::ffi::{self, Ids};
use crate::tokenizer::Tokenizer;

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_tokenizer_new(
    json: *const u8,
    len: usize,
    out: *mut *mut Arc<Tokenizer>,
) -> i32 {
    ffi::guard_code(|| {
        let tokenizer = Tokenizer::new(unsafe { ffi::text(json, len)? })?;
        unsafe { *out = Box::into_raw(Box::new(tokenizer)) };
        Ok(())
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_tokenizer_free(handle: *mut Arc<Tokenizer>) {
    unsafe { ffi::free(handle) }
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_tokenizer_encode(
    handle: *const Arc<Tokenizer>,
    text: *const u8,
    len: usize,
    flags: u32,
    out: *mut Ids,
) -> i32 {
    ffi::guard_code(|| {
        let ids = unsafe { &*handle }.encode(unsafe { ffi::text(text, len)? }, flags)?;
        unsafe { *out = Ids::new(ids) };
        Ok(())
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_tokenizer_size(handle: *const Arc<Tokenizer>) -> i64 {
    ffi::guard(|| Ok(unsafe { &*handle }.vocabulary().size() as i64))
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_tokenizer_id(
    handle: *const Arc<Tokenizer>,
    token: *const u8,
    len: usize,
) -> i64 {
    ffi::guard(|| {
        let text = unsafe { ffi::text(token, len)? };
        match unsafe { &*handle }.vocabulary().id(text) {
            Some(id) => Ok(i64::from(id)),
            None => Err("no such token".into()),
        }
    })
}

/// What `tb_tokenizer_token` fills in.
#[repr(C)]
pub struct TokenView {
    text: *const u8,
    text_len: usize,
    bytes: *const u8,
    bytes_len: usize,
    flags: u32,
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_tokenizer_token(
    handle: *const Arc<Tokenizer>,
    id: u32,
    out: *mut TokenView,
) -> i32 {
    ffi::guard_code(|| {
        let Some(token) = unsafe { &*handle }.vocabulary().token(id) else {
            return Err("no such token".into());
        };
        let view = TokenView {
            text: token.text.as_ptr(),
            text_len: token.text.len(),
            bytes: token.bytes.as_ptr(),
            bytes_len: token.bytes.len(),
            flags: token.flags,
        };
        unsafe { *out = view };
        Ok(())
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_tokenizer_strips_leading_space(handle: *const Arc<Tokenizer>) -> i64 {
    ffi::guard(|| {
        Ok(i64::from(
            unsafe { &*handle }.vocabulary().strips_leading_space(),
        ))
    })
}
