//! Tokenizers, chat templates and grammar masks behind one C ABI (`tandem_bridge.h`).
//!
//! Every export catches panics and reports failures as a code plus a thread-local message.

mod ffi;
mod grammar;
mod python;
mod shape;
mod template;
mod tokenizer;
mod vocabulary;

mod export;
