//! A load writes into the existing arrays.

use crate::ErrorKind;
use burn::backend::Flex;
use burn::tensor::{Int, Tensor};

use super::*;
use crate::tensor::{Capacity, Kernels};
use crate::{Constraint, Limits, TokenId};

fn vocabulary() -> Vocabulary {
    let tokens = ["a", "b", "c", "ab", "abc", "cc"].map(|token| Some(token.as_bytes().to_vec()));
    Vocabulary::from_bytes(tokens.into_iter().chain([None])).unwrap().with_eos([TokenId(6)]).unwrap()
}

fn arena(vocabulary: &Vocabulary, kernels: Kernels) -> Arena {
    let capacity = Capacity { constraints: 3, states: 5 * PAGE, classes: 16, ..Capacity::new() };
    let options = TensorOptions { capacity, kernels, ..TensorOptions::default() };
    Arena::new(vocabulary, 9, &options, &Device::flex()).unwrap()
}

/// The address of the values of a tensor.
fn address(tensor: &Tensor<1, Int>) -> *const i32 {
    tensor.clone().try_into_primitive::<Flex>().unwrap().storage::<i32>().as_ptr()
}

#[test]
fn a_load_copies_no_buffer() {
    let vocabulary = vocabulary();
    let compile = |pattern: &str| {
        CompiledConstraint::compile(&Constraint::regex(pattern).unwrap(), &vocabulary, &Limits::default())
            .unwrap()
    };
    let mut arena = arena(&vocabulary, Kernels::BuiltIn);
    let of = |arena: &Arena| match &arena.device_constraint.store {
        Store::BuiltIn(image) => address(&image.values),
        _ => panic!("built-in operations were asked for"),
    };
    let before = of(&arena);
    for pattern in ["(ab|c)*", "a{40}", "[abc]{3}", "b", "c{70}"] {
        let index = arena.admit(&compile(pattern)).unwrap();
        assert_eq!(of(&arena), before, "{pattern}");
        if index > 1 {
            arena.release(index).unwrap();
        }
    }
    // A clone keeps its constraints.
    let kept = arena.clone();
    arena.admit(&compile("a{50}")).unwrap();
    assert_eq!(of(&kept), before);
    assert_ne!(kept.free_space(), arena.free_space());
}

#[test]
fn room_is_shared_refused_and_given_back() {
    let vocabulary = vocabulary();
    let compile = |pattern: &str| {
        CompiledConstraint::compile(&Constraint::regex(pattern).unwrap(), &vocabulary, &Limits::default())
            .unwrap()
    };
    let byte_level = CompiledConstraint::compile_byte_level(
        &Constraint::regex("a{9}").unwrap(),
        &vocabulary,
        &Limits::default(),
    );
    let byte_level = byte_level.unwrap();
    for kernels in [Kernels::Fused, Kernels::BuiltIn] {
        let mut arena = arena(&vocabulary, kernels);
        let all = arena.capacity();
        assert_eq!(all, ArenaSpace { states: 5 * PAGE, constraints: 3 });
        assert_eq!(arena.free_space(), all);
        // One state too many for two pages.
        let long = compile("a{64}");
        let first = arena.admit(&long).unwrap();
        assert_eq!(arena.admit(&long.clone()).unwrap(), first, "a clone is the same constraint");
        assert_eq!(arena.holders(first), 2);
        assert_eq!(
            arena.admit(&CompiledConstraint::unconstrained(&vocabulary)).unwrap(),
            Arena::UNCONSTRAINED
        );
        assert_eq!(arena.free_space(), ArenaSpace { states: 2 * PAGE, constraints: 2 });

        let error = arena.admit(&compile("c{64}")).unwrap_err();
        let [needed, free] = error.arena_space().unwrap();
        assert!(error.kind() == ErrorKind::Full && error.kind() != ErrorKind::Input, "{error}");
        assert_eq!(needed, ArenaSpace { states: 3 * PAGE, constraints: 1 });
        assert_eq!(free, arena.free_space());
        assert!(error.to_string().contains("96 states"), "{error}");

        assert_eq!(arena.admit(&compile("a{200}")).unwrap_err().kind(), ErrorKind::Input, "never fits");
        assert_eq!(arena.release(2).unwrap_err().kind(), ErrorKind::Input);
        assert_eq!(arena.release(9).unwrap_err().kind(), ErrorKind::Input);
        let second = arena.admit(&byte_level).unwrap();
        let third = arena.admit(&compile("b")).unwrap();
        assert_eq!(arena.free_space(), ArenaSpace { states: 0, constraints: 0 });
        assert_eq!(arena.admit(&compile("c")).unwrap_err().kind(), ErrorKind::Full);
        arena.release(first).unwrap();
        assert_eq!(arena.admit(&compile("c")).unwrap_err().kind(), ErrorKind::Full, "held once more");
        arena.release(first).unwrap();
        assert_eq!(arena.device_constraint().start(first), StateId::DEAD);
        arena.release(second).unwrap();
        arena.release(third).unwrap();
        assert_eq!(arena.free_space(), all);
    }
    let none = TensorOptions::default();
    assert_eq!(Arena::new(&vocabulary, 9, &none, &Device::flex()).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(Arena::new(&vocabulary, 5, &none, &Device::flex()).unwrap_err().kind(), ErrorKind::Input);
    let huge =
        Capacity { constraints: usize::MAX, states: usize::MAX, classes: usize::MAX, ..Capacity::new() };
    let huge = TensorOptions { capacity: huge, ..none };
    assert_eq!(Arena::new(&vocabulary, 9, &huge, &Device::flex()).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(
        Arena::new(&vocabulary, 5, &huge, &Device::flex()).unwrap_err().kind(),
        ErrorKind::IncompatibleVocabulary
    );
}
