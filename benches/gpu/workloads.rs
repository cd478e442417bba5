//! Rows of a batch, all at the same position of a text.

use burn::tensor::{DType, Device, Tensor};
use burn_dfa::processor::{ConstraintProcessor, Position};
use burn_dfa::{CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, Vocabulary};

use crate::{constraint, vocabulary};

/// The form of the constraint.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    TokenLevel,
    ByteLevel,
}

impl Form {
    pub fn name(self) -> String {
        match self {
            Self::TokenLevel => "token-level".into(),
            Self::ByteLevel => "byte-level".into(),
        }
    }
}

/// The position of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// In a string, where most tokens are legal.
    String,
    /// In a string of few letters, where few tokens are legal.
    Letters,
    /// In a string inside this number of nested objects, each in a list.
    Nested(usize),
}

impl Workload {
    pub fn name(self) -> String {
        match self {
            Self::String => "string".into(),
            Self::Letters => "few letters".into(),
            Self::Nested(depth) => format!("{depth} objects deep"),
        }
    }

    fn constraint(self) -> Constraint {
        match self {
            Self::String => constraint::text(),
            Self::Letters => constraint::letters(),
            Self::Nested(_) => constraint::nested(),
        }
    }

    fn text(self) -> Vec<u8> {
        match self {
            Self::String => b"{\"text\": \"Ad".to_vec(),
            Self::Letters => b"{\"text\": \"a".to_vec(),
            Self::Nested(depth) => {
                [b"{\"list\": [".repeat(depth), b"{\"list\": [], \"name\": \"Ad".to_vec()].concat()
            }
        }
    }

    /// A processor of `batch` rows, and their position. With `keeps`, the batch keeps mask rows.
    pub fn rows(
        self,
        form: Form,
        batch: usize,
        keeps: bool,
        vocabulary: &Vocabulary,
        device: &Device,
    ) -> (ConstraintProcessor, Position) {
        let limits = Limits::default();
        let compile = match form {
            Form::TokenLevel => CompiledConstraint::compile_token_level,
            Form::ByteLevel => CompiledConstraint::compile_byte_level,
        };
        let compiled = compile(&self.constraint(), vocabulary, &limits).expect("a constraint");
        let options = TensorOptions::new().with_max_bytes(1 << 30);
        let options = if keeps { options } else { options.with_mask_rows_bytes(0) };
        let device_constraint = DeviceConstraint::new(&[&compiled], vocabulary.len(), &options, device)
            .expect("a device constraint");
        let processor = ConstraintProcessor::new(device_constraint, &vec![0; batch]).expect("rows");
        let mut position = processor.start();
        for byte in self.text() {
            let token = vocabulary::byte(byte).0 as i32;
            position = processor.advance(position, Tensor::full([batch], token, (device, DType::I32)));
        }
        (processor, position)
    }
}
