//! Exports of grammar masks.

use std::sync::Arc;

use crate::ffi;
use crate::grammar::{GrammarCompiler, GrammarMatcher};
use crate::tokenizer::Tokenizer;

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_grammar_new(
    tokenizer: *const Arc<Tokenizer>,
    logits: u32,
    eos: *const u32,
    eos_count: usize,
    out: *mut *mut GrammarCompiler,
) -> i32 {
    ffi::guard_code(|| {
        let tokenizer = unsafe { &*tokenizer }.clone();
        let compiler =
            GrammarCompiler::new(tokenizer, logits, unsafe { ffi::ids(eos, eos_count) })?;
        unsafe { *out = Box::into_raw(Box::new(compiler)) };
        Ok(())
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_grammar_free(handle: *mut GrammarCompiler) {
    unsafe { ffi::free(handle) }
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_grammar_compile(
    handle: *const GrammarCompiler,
    kind: u32,
    source: *const u8,
    len: usize,
    out: *mut *mut GrammarMatcher,
) -> i32 {
    ffi::guard_code(|| {
        let matcher = unsafe { &*handle }.compile(kind, unsafe { ffi::text(source, len)? })?;
        unsafe { *out = Box::into_raw(Box::new(matcher)) };
        Ok(())
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_matcher_clone(
    handle: *const GrammarMatcher,
    out: *mut *mut GrammarMatcher,
) -> i32 {
    ffi::guard_code(|| {
        let copy = unsafe { &*handle }.duplicate();
        unsafe { *out = Box::into_raw(Box::new(copy)) };
        Ok(())
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_matcher_free(handle: *mut GrammarMatcher) {
    unsafe { ffi::free(handle) }
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_matcher_mask(
    handle: *mut GrammarMatcher,
    mask: *mut u32,
    words: usize,
) -> i32 {
    ffi::guard_code(|| {
        let mask = unsafe { std::slice::from_raw_parts_mut(mask, words) };
        unsafe { &mut *handle }.mask(mask)
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_matcher_consume(
    handle: *mut GrammarMatcher,
    ids: *const u32,
    count: usize,
) -> i32 {
    ffi::guard_code(|| unsafe { &mut *handle }.consume(unsafe { ffi::ids(ids, count) }))
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_matcher_rollback(handle: *mut GrammarMatcher, count: usize) -> i32 {
    ffi::guard_code(|| unsafe { &mut *handle }.rollback(count))
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_matcher_accepted(
    handle: *mut GrammarMatcher,
    ids: *const u32,
    count: usize,
) -> i64 {
    ffi::guard(|| {
        let accepted = unsafe { &mut *handle }.accepted(unsafe { ffi::ids(ids, count) })?;
        Ok(accepted as i64)
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_matcher_may_end(handle: *mut GrammarMatcher) -> i64 {
    ffi::guard(|| Ok(i64::from(unsafe { &mut *handle }.may_end()?)))
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_matcher_has_ended(handle: *const GrammarMatcher) -> i64 {
    ffi::guard(|| Ok(i64::from(unsafe { &*handle }.has_ended()?)))
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_matcher_bytes(handle: *const GrammarMatcher) -> i64 {
    ffi::guard(|| Ok(unsafe { &*handle }.bytes() as i64))
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_matcher_followed(handle: *const GrammarMatcher) -> i64 {
    ffi::guard(|| Ok(unsafe { &*handle }.followed() as i64))
}
