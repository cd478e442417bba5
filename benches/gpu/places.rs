//! Rows of a batch, each at the same place of a text.

use burn::tensor::{DType, Device, Tensor};
use burn_dfa::processor::{DfaProcessor, Position};
use burn_dfa::{Constraint, Layout, Limits, TensorOptions, TensorTable, TokenTable, Vocabulary};

use crate::{constraint, vocabulary};

/// Where the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a string, where most tokens are legal.
    String,
    /// In a key, where few are; a choice moves on.
    Key,
    /// In a string, so many objects and their lists deep.
    Nested(usize),
}

impl Place {
    pub fn name(self) -> String {
        match self {
            Self::String => "string".into(),
            Self::Key => "key".into(),
            Self::Nested(depth) => format!("{depth} objects deep"),
        }
    }

    fn constraint(self) -> Constraint {
        match self {
            Self::String => constraint::text(),
            Self::Key => constraint::person(),
            Self::Nested(_) => constraint::nested(),
        }
    }

    fn text(self) -> Vec<u8> {
        match self {
            Self::String => b"{\"text\":\"Ad".to_vec(),
            Self::Key => b"{\"n".to_vec(),
            Self::Nested(depth) => {
                [b"{\"list\":[".repeat(depth), b"{\"list\":[],\"name\":\"Ad".to_vec()].concat()
            }
        }
    }

    /// A processor of `batch` rows, and where they are.
    pub fn rows(
        self,
        layout: Layout,
        batch: usize,
        vocabulary: &Vocabulary,
        device: &Device,
    ) -> (DfaProcessor, Position) {
        let limits = Limits::default();
        let is_nested = matches!(self, Self::Nested(_));
        let compile =
            if layout == Layout::Walk || is_nested { TokenTable::walk } else { TokenTable::tabulate };
        let mut table = compile(&self.constraint(), vocabulary, &limits).expect("a table");
        if layout == Layout::Classes && is_nested {
            table = table.with_token_classes(&limits).expect("classes of tokens");
        }
        let options = TensorOptions::new().with_layout(layout).with_max_bytes(1 << 30);
        let table = TensorTable::new(&[&table], vocabulary.len(), &options, device).expect("a table");
        let processor = DfaProcessor::new(table, &vec![0; batch]).expect("rows");
        let mut position = processor.start();
        for byte in self.text() {
            let token = vocabulary::byte(byte).0 as i32;
            position = processor.advance(position, Tensor::full([batch], token, (device, DType::I32)));
        }
        (processor, position)
    }
}
