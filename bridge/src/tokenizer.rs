//! Text to token ids.

use std::sync::Arc;

use serde_json::Value;
use tokenizers::pipeline::{
    normalize_all, EncodeOptions, Model, Override, PipelinePreTokenizer, PipelineToken,
    PipelineTokenizer, PreTokenizer, PreTokenizerScratch, Segment, SpecialSegmentIterator,
};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::PipelineSequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::SplitDelimiterBehavior;

use crate::ffi::Fallible;
use crate::vocabulary::Vocabulary;

/// Encode flags.
pub const ADD_SPECIAL: u32 = 1;
pub const SPECIAL_AS_TEXT: u32 = 2;

/// A loaded `tokenizer.json`. Shared by threads.
pub struct Tokenizer {
    pipeline: PipelineTokenizer,
    /// Set when the pipeline's own pre-tokenizer has patterns that its reader gave no engine.
    searching: Option<PipelinePreTokenizer>,
    vocabulary: Vocabulary,
    /// Ids from here on stand for bytes that the vocabulary lacks; they are left out of encodings.
    placeholders: u32,
}

impl Tokenizer {
    pub fn new(json: &str) -> Fallible<Arc<Tokenizer>> {
        let mut root: Value = serde_json::from_str(json)
            .map_err(|error| format!("tokenizer.json is not valid JSON: {error}"))?;
        let vocabulary = Vocabulary::new(&root)?;
        let placeholders = fill_missing_bytes(&mut root);
        tokenizers::canonicalize_value(&mut root)?;
        let canonical = serde_json::to_string(&root)?;
        let pipeline = tokenizers::from_json(&canonical)?;
        let searching = searching(pipeline.get_pre_tokenizer())?;
        Ok(Arc::new(Tokenizer {
            pipeline,
            searching,
            vocabulary,
            placeholders,
        }))
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub fn encode(&self, text: &str, flags: u32) -> Fallible<Vec<u32>> {
        let options = EncodeOptions {
            add_special_tokens: flags & ADD_SPECIAL != 0,
            encode_special_tokens: flags & SPECIAL_AS_TEXT != 0,
            padding: Override::Off,
            truncation: Override::Off,
        };
        let mut tokens: Vec<PipelineToken> = Vec::with_capacity(text.len() / 4);
        match &self.searching {
            None => self.pipeline.encode_into(text, &options, &mut tokens)?,
            Some(splitter) => {
                self.encode_searching(text, splitter, &options, &mut tokens)?;
                if options.add_special_tokens {
                    let template = &self.pipeline.get_post_processor().single;
                    let encoding = template.post_process::<true>(tokens, None);
                    tokens = encoding.ids().to_vec();
                }
            }
        }
        let mut ids = PipelineToken::cast_slice(&tokens).to_vec();
        ids.retain(|&id| id < self.placeholders);
        Ok(ids)
    }

    /// The pipeline's steps with another pre-tokenizer.
    fn encode_searching(
        &self,
        text: &str,
        splitter: &PipelinePreTokenizer,
        options: &EncodeOptions,
        tokens: &mut Vec<PipelineToken>,
    ) -> Fallible<()> {
        let added = self.pipeline.get_added_vocabulary();
        let as_text = options.encode_special_tokens;
        for segment in SpecialSegmentIterator::new(text, added, false, as_text) {
            let (chunk, offset) = match segment {
                Segment::SpecialToken(id) => {
                    tokens.push(id.into());
                    continue;
                }
                Segment::Text { text, input_offset } => (text, input_offset),
            };
            let normalized = normalize_all(self.pipeline.get_normalizers(), chunk, offset)?;
            for segment in SpecialSegmentIterator::new(&normalized, added, true, as_text) {
                match segment {
                    Segment::SpecialToken(id) => tokens.push(id.into()),
                    Segment::Text { text, .. } => self.encode_plain(text, splitter, tokens)?,
                }
            }
        }
        Ok(())
    }

    fn encode_plain(
        &self,
        text: &str,
        splitter: &PipelinePreTokenizer,
        tokens: &mut Vec<PipelineToken>,
    ) -> Fallible<()> {
        if u32::try_from(text.len()).is_err() {
            return Err("the text is too long to encode".into());
        }
        let mut spans = Vec::new();
        splitter.pre_tokenize(text, &mut PreTokenizerScratch::default(), &mut spans)?;
        let model = self.pipeline.get_model();
        model.tokenize_spans(text, &spans, &mut model.init_scratch(), tokens)?;
        Ok(())
    }
}

/// Gives bytes that a byte-level BPE vocabulary lacks ids past its end, and returns the first of them.
///
/// SmolLM2's vocabulary, for one, has no token for eight control bytes. The reference library leaves
/// such bytes out of encodings; tokenizers 1.0.0-rc.3 refuses the whole vocabulary.
fn fill_missing_bytes(root: &mut Value) -> u32 {
    let byte_level = |part: &Value| part.to_string().contains("\"ByteLevel\"");
    let applies = root["model"]["type"] == "BPE" && byte_level(&root["pre_tokenizer"]);
    let added = root["added_tokens"].as_array().into_iter().flatten();
    let last_added = added.filter_map(|token| token["id"].as_u64()).max();
    let Some(vocab) = root["model"]["vocab"].as_object_mut().filter(|_| applies) else {
        return u32::MAX;
    };
    let last = vocab.values().filter_map(Value::as_u64).max();
    let first = last.max(last_added).map_or(0, |id| id + 1);
    let mut next = first;
    for spelling in ByteLevel::alphabet() {
        let spelling = spelling.to_string();
        if !vocab.contains_key(&spelling) {
            vocab.insert(spelling, next.into());
            next += 1;
        }
    }
    u32::try_from(first).unwrap_or(u32::MAX)
}

/// The same pre-tokenizer with a search engine for each pattern; nothing when none lacks one.
///
/// The reader of tokenizers 1.0.0-rc.3 makes every `Split` as if its pattern were one that is
/// built in; another one then fails on the first text.
fn searching(splitter: &PipelinePreTokenizer) -> Fallible<Option<PipelinePreTokenizer>> {
    match splitter {
        PipelinePreTokenizer::Split(split) => {
            let isolated = split.behavior == SplitDelimiterBehavior::Isolated && !split.invert;
            let is_regex = matches!(split.pattern, SplitPattern::Regex(_));
            if !is_regex || (isolated && split.grammar().is_some()) {
                return Ok(None);
            }
            let made = Split::new(split.pattern.clone(), split.behavior, split.invert)?;
            Ok(Some(PipelinePreTokenizer::Split(made)))
        }
        PipelinePreTokenizer::Sequence(sequence) if !sequence.is_deepseek() => {
            let mut changed = false;
            let mut parts = Vec::new();
            for part in sequence.pre_tokenizers() {
                let other = searching(part)?;
                changed |= other.is_some();
                parts.push(other.unwrap_or_else(|| part.clone()));
            }
            let made = PipelinePreTokenizer::Sequence(PipelineSequence::new(parts));
            Ok(changed.then_some(made))
        }
        _ => Ok(None),
    }
}
