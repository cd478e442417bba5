//! Decoded blocks against the Python package `gguf`, bit for bit.

use burn_dfa_gguf::block::{BlockError, BlockType};
use burn_dfa_testing::{input, python};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Reads lines of a type and blocks in hexadecimal; writes the bits of their numbers, with one NaN
/// for all.
const SCRIPT: &str = "
import sys
import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
np.seterr(all='ignore')
for line in sys.stdin:
    name, blocks = line.split()
    blocks = np.frombuffer(bytes.fromhex(blocks), dtype=np.uint8)
    numbers = dequantize(blocks, GGMLQuantizationType[name]).astype(np.float32)
    print(np.where(np.isnan(numbers), np.float32('nan'), numbers).astype('<f4').tobytes().hex())
";

/// Random blocks, and blocks of equal bytes: zeros, the greatest numbers, subnormals, infinities
/// and NaNs as scales.
fn blocks(block: BlockType, random: &mut StdRng) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..500 * block.bytes()).map(|_| random.random()).collect();
    for byte in [0x00, 0x01, 0x03, 0x7b, 0x7c, 0x7f, 0x80, 0x83, 0xfb, 0xfc, 0xff] {
        bytes.extend(std::iter::repeat_n(byte, block.bytes()));
    }
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn blocks_decode_as_in_python() {
    let Some(mut python) = python::with("numpy, gguf") else { return };
    let mut random = StdRng::seed_from_u64(48);
    let stored = BlockType::ALL.map(|block| (block, blocks(block, &mut random)));
    let lines: String = stored.iter().map(|(block, bytes)| format!("{block:?} {}\n", hex(bytes))).collect();
    let output = input::fed(python.args(["-c", SCRIPT]), lines.into_bytes());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.lines().count(), stored.len());
    for ((block, bytes), expected) in stored.iter().zip(output.lines()) {
        let mut numbers = vec![0.0; bytes.len() / block.bytes() * block.elements()];
        block.dequantize(bytes, &mut numbers).unwrap();
        let numbers = numbers.iter().map(|number| if number.is_nan() { f32::NAN } else { *number });
        let found: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
        let differs =
            found.chunks(4).zip(expected.as_bytes().chunks(8)).position(|(a, b)| hex(a).as_bytes() != b);
        assert_eq!(differs, None, "{block:?}: the first number that differs");
        assert_eq!(found.len() * 2, expected.len());
    }
}

#[test]
fn dequantization_refuses_wrong_sizes() {
    for block in BlockType::ALL {
        let (elements, bytes) = (2 * block.elements(), 2 * block.bytes());
        let mut out = vec![0.0; elements];
        block.dequantize(&vec![0; bytes], &mut out).unwrap();
        block.dequantize(&[], &mut []).unwrap();
        for wrong in [0, bytes - 1, bytes + 1, block.bytes()] {
            let error = block.dequantize(&vec![0; wrong], &mut out).unwrap_err();
            assert_eq!(error, BlockError::Bytes { block, elements, bytes: wrong, expected: bytes });
        }
        if block.elements() > 1 {
            let error = block.dequantize(&vec![0; bytes], &mut out[1..]).unwrap_err();
            assert_eq!(error, BlockError::Elements { block, elements: elements - 1 });
        }
        assert_eq!(block.bytes_of(elements), Ok(bytes));
    }
    assert_eq!(BlockType::Q4_K.bytes_of(usize::MAX / 256 * 256), Ok(usize::MAX / 256 * 144));
}
