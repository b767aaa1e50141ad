//! Exports of chat templates.

use crate::ffi::{self, Text};
use crate::template::{LocalTime, Template};

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_template_new(
    source: *const u8,
    len: usize,
    out: *mut *mut Template,
) -> i32 {
    ffi::guard_code(|| {
        let template = Template::new(unsafe { ffi::text(source, len)? })?;
        unsafe { *out = Box::into_raw(Box::new(template)) };
        Ok(())
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_template_free(handle: *mut Template) {
    unsafe { ffi::free(handle) }
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tb_template_render(
    handle: *const Template,
    context: *const u8,
    len: usize,
    unix_seconds: i64,
    utc_offset_seconds: i32,
    out: *mut Text,
) -> i32 {
    ffi::guard_code(|| {
        let time = LocalTime {
            unix_seconds,
            utc_offset_seconds,
        };
        let text = unsafe { &*handle }.render(unsafe { ffi::text(context, len)? }, time)?;
        unsafe { *out = Text::new(text) };
        Ok(())
    })
}
