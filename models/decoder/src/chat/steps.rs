//! Turns operators of compiled templates into filters that count.
//!
//! minijinja runs an operator as one instruction, regardless of its cost. If a filter can replace
//! the instruction, it becomes this filter. Other instructions become a jump beyond the end, to
//! filters that count, the instruction itself, and a jump back.

use minijinja::machinery::{Instruction, Instructions};

/// Changes the instructions, and returns the length of the longest raw text that an instruction
/// writes.
pub(crate) fn count(instructions: &mut Instructions<'_>) -> usize {
    let mut longest = 0;
    let end = (0..).find(|&at| instructions.get(at).is_none()).unwrap_or(0);
    // Only jumps reach instructions beyond the end.
    instructions.add(Instruction::Return);
    for at in 0..end {
        let Some(instruction) = instructions.get(at).cloned() else { continue };
        let filter = match instruction {
            Instruction::StringConcat => filter("~", 2),
            Instruction::Add => filter("+", 2),
            Instruction::Mul => filter("*", 2),
            Instruction::Eq => filter("==", 2),
            Instruction::Ne => filter("!=", 2),
            Instruction::Lt => filter("<", 2),
            Instruction::Lte => filter("<=", 2),
            Instruction::Gt => filter(">", 2),
            Instruction::Gte => filter(">=", 2),
            Instruction::In => filter("in", 2),
            Instruction::GetItem => filter("[]", 2),
            Instruction::Slice => filter("[:]", 4),
            Instruction::BuildMap(pairs @ 1..) => filter("{}", 2 * pairs),
            Instruction::UnpackLists(lists) => {
                detour(instructions, at, [filter("*,", lists), Instruction::UnpackLists(1)]);
                continue;
            }
            Instruction::PushLoop(_) | Instruction::UnpackList(_) => {
                detour(instructions, at, [filter("~read", 1), instruction]);
                continue;
            }
            Instruction::CompareAndPreserve(_) => {
                detour(instructions, at, [filter("~weigh", 1), instruction]);
                continue;
            }
            Instruction::SetAttr(_) => {
                // The value is below the namespace on the stack.
                let keep = [Instruction::Swap, filter("~keep", 1), Instruction::Swap, instruction];
                detour(instructions, at, keep);
                continue;
            }
            Instruction::EmitRaw(text) => {
                longest = longest.max(text.len());
                continue;
            }
            _ => continue,
        };
        if let Some(instruction) = instructions.get_mut(at) {
            *instruction = filter;
        }
    }
    longest
}

fn filter(name: &'static str, arguments: usize) -> Instruction<'static> {
    // A tag has too few tokens to exceed this number.
    Instruction::ApplyFilter(name, Some(u16::try_from(arguments).unwrap_or(u16::MAX)), u8::MAX)
}

/// Replaces one instruction by several.
fn detour<'s>(
    instructions: &mut Instructions<'s>,
    at: u32,
    several: impl IntoIterator<Item = Instruction<'s>>,
) {
    let line = instructions.get_line(at).and_then(|line| u16::try_from(line).ok()).unwrap_or(0);
    let mut first = None;
    for instruction in several.into_iter().chain([Instruction::Jump(at + 1)]) {
        let added = instructions.add_with_line(instruction, line);
        first.get_or_insert(added);
    }
    if let (Some(instruction), Some(first)) = (instructions.get_mut(at), first) {
        *instruction = Instruction::Jump(first);
    }
}
