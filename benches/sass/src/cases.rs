//! The cases: each kernel with what decides its code.

use std::fs;
use std::io::{Error, Result};
use std::path::Path;
use std::sync::Arc;

use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl_core::Compiler;
use cubecl_cpp::shared::CppCompiler;
use cubecl_cpp::target::Cuda;

use super::advance::{SourceArgs, advance_kernel};
use super::choose::{choose_kernel, merge_kernel};
use super::device::{buffer, options, properties, target, tensor};
use super::follow::follow_kernel;
use super::lookup::LookupLaunch;
use super::mask::{mask_in_place_kernel, mask_kernel};
use super::noise::{GumbelKeysLaunch, KeysArgs, NoiseArgs};
use super::packing::Packing;
use super::rows::RowsLaunch;
use super::search::keep;
use super::tile::{AT_ONCE, UNITS};

/// The sizes of the arguments, which do not decide the code.
const BATCH: usize = 8;
const VOCABULARY: usize = 49_152;
const TILES: u32 = 6;
const VECTORS: u32 = 6_144;

/// What the form of a constraint decides of the code.
#[derive(Clone, Copy)]
struct Form {
    name: &'static str,
    is_byte_level: bool,
    /// The size of the array for pushed frames; none without a stack.
    frame_buffer_len: Option<u32>,
}

const FORMS: [Form; 3] = [
    Form { name: "token-level", is_byte_level: false, frame_buffer_len: None },
    Form { name: "byte-level", is_byte_level: true, frame_buffer_len: None },
    Form { name: "stack of 64", is_byte_level: true, frame_buffer_len: Some(64) },
];
/// With the other sizes of the array for pushed frames.
const STACKS: [Form; 4] = [
    Form { name: "stack of 16", is_byte_level: true, frame_buffer_len: Some(16) },
    Form { name: "stack of 256", is_byte_level: true, frame_buffer_len: Some(256) },
    Form { name: "stack of 384", is_byte_level: true, frame_buffer_len: Some(384) },
    Form { name: "stack of 2048", is_byte_level: true, frame_buffer_len: Some(2048) },
];

const KINDS: [(&str, FloatKind, usize); 3] =
    [("f32", FloatKind::F32, 4), ("f16", FloatKind::F16, 2), ("bf16", FloatKind::BF16, 2)];

/// The loads of `size` logits: the type and the count of the numbers, and the logits in one of them.
fn loads(kind: FloatKind, size: usize) -> (ElemType, usize, Packing) {
    let kind = ElemType::Float(kind);
    // One logit in a vocabulary of an odd size.
    let packing = if size == 1 { Packing::One } else { Packing::of(kind) };
    (packing.numbers(kind), size / packing.count(), packing)
}

impl Form {
    fn launch(self) -> LookupLaunch {
        let mut offsets = SequenceArg::new();
        (0..12).for_each(|array: u32| offsets.push(array * 64));
        let has_stack = self.frame_buffer_len.is_some();
        let exits = if has_stack { 3 } else { 0 };
        let frame_buffer_len = self.frame_buffer_len.unwrap_or(1);
        let vocabulary = VOCABULARY as u32;
        LookupLaunch::new(
            buffer(1 << 20),
            offsets,
            100,
            50,
            vocabulary,
            256,
            self.is_byte_level,
            self.is_byte_level,
            exits,
            8,
            8,
            has_stack,
            frame_buffer_len,
        )
    }

    fn position(self) -> TensorArg {
        tensor(&[BATCH, if self.frame_buffer_len.is_some() { 35 } else { 2 }], 4)
    }
}

/// Writes the sources of all cases into a folder, and counts them.
pub(crate) fn write(folder: &Path) -> Result<usize> {
    fs::create_dir_all(folder)?;
    let mut cases = Cases { folder, properties: properties(), target: target(), at_once: AT_ONCE, count: 0 };
    for form in FORMS {
        for keeps in [true, false] {
            cases.advance(form, keeps, false, false)?;
            cases.advance(form, keeps, true, false)?;
            cases.advance(form, keeps, true, true)?;
        }
        for kind in KINDS {
            cases.mask(form, true, kind, 16 / kind.2)?;
            for gumbel in [false, true] {
                cases.choose(form, true, kind, 16 / kind.2, gumbel, true)?;
            }
        }
        // More cubes than a GPU works on at a time.
        cases.at_once = 1;
        cases.mask(form, true, KINDS[2], 8)?;
        for gumbel in [false, true] {
            cases.choose(form, true, KINDS[2], 8, gumbel, true)?;
        }
        cases.at_once = AT_ONCE;
        cases.follow(form)?;
    }
    for kind in KINDS {
        cases.mask(FORMS[0], false, kind, 16 / kind.2)?;
        cases.choose(FORMS[0], false, kind, 16 / kind.2, true, true)?;
        // A vocabulary of an odd size.
        cases.mask(FORMS[0], false, kind, 1)?;
        cases.choose(FORMS[0], false, kind, 1, true, true)?;
    }
    cases.choose(FORMS[0], true, KINDS[0], 4, false, false)?;
    cases.merge()?;
    for (kind, digits) in KINDS.into_iter().zip([5, 4, 3]) {
        cases.filter(kind, digits, false)?;
        cases.filter(kind, digits, true)?;
    }
    for form in STACKS {
        cases.advance(form, true, true, false)?;
        cases.mask(form, true, KINDS[0], 4)?;
        cases.choose(form, true, KINDS[0], 4, false, true)?;
        cases.follow(form)?;
    }
    Ok(cases.count)
}

struct Cases<'a> {
    folder: &'a Path,
    properties: Arc<DeviceProperties>,
    target: Arc<TargetProperties>,
    /// The vectors of logits that a unit loads at once.
    at_once: u32,
    count: usize,
}

/// The argument of a kernel's pool.
fn rows(keeps: bool) -> RowsLaunch {
    RowsLaunch::new(64, 4, 6 * 513, 513, keeps)
}

fn pool(keeps: bool) -> &'static str {
    if keeps { "pool" } else { "no pool" }
}

fn noise(gumbel: bool) -> &'static str {
    if gumbel { "Gumbel" } else { "greedy" }
}

impl Cases<'_> {
    /// What the name of a case says of the loads.
    fn alone(&self) -> &'static [&'static str] {
        if self.at_once == 1 { &["loaded alone"] } else { &[] }
    }

    fn advance(&mut self, form: Form, keeps: bool, in_place: bool, gumbel: bool) -> Result<()> {
        let source = if in_place { SourceArgs::InPlace } else { SourceArgs::Other(form.position()) };
        let keys = if gumbel {
            KeysArgs::Gumbel(GumbelKeysLaunch::new(tensor(&[BATCH], 4), tensor(&[BATCH, 3], 4)))
        } else {
            KeysArgs::None
        };
        let kernel = advance_kernel::create_dummy_kernel(
            self.properties.clone(),
            self.target.clone(),
            CubeCount::Static(1, 1, 1),
            CubeDim::new_1d(UNITS),
            source,
            form.position(),
            tensor(&[BATCH], 4),
            keys,
            form.launch(),
            rows(keeps),
            buffer(1 << 20),
            buffer(1 << 10),
            20,
        );
        let place = if in_place { "in place" } else { "copied" };
        self.case(&["advance", form.name, pool(keeps), place, noise(gumbel)], kernel)
    }

    fn mask(
        &mut self,
        form: Form,
        keeps: bool,
        (name, kind, bytes): (&str, FloatKind, usize),
        size: usize,
    ) -> Result<()> {
        let (kind, numbers, packing) = loads(kind, size);
        // One kernel has three more arguments: the masked logits, the vectors loaded at once, and
        // the vectors of a masked row.
        macro_rules! case {
            ($name:literal, $kernel:ident $(, $argument:expr)*) => {{
                let kernel = $kernel::create_dummy_kernel(
                    self.properties.clone(),
                    self.target.clone(),
                    CubeCount::Static(TILES, BATCH as u32, 1),
                    CubeDim::new_1d(UNITS),
                    AddressType::U32,
                    numbers,
                    tensor(&[BATCH, VOCABULARY], bytes),
                    form.position(),
                    buffer(1 << 10),
                    form.launch(),
                    rows(keeps),
                    buffer(1 << 20),
                    $($argument,)*
                    VECTORS,
                    35,
                    5,
                    0,
                    packing.never(kind),
                    packing,
                    kind,
                );
                let logits = format!("{name} by {size}");
                self.case(&[&[$name, form.name, pool(keeps), &logits], self.alone()].concat(), kernel)
            }};
        }
        case!("mask", mask_kernel, tensor(&[BATCH, VOCABULARY], bytes), self.at_once, VECTORS)?;
        if self.at_once == 1 {
            return Ok(());
        }
        case!("mask in place", mask_in_place_kernel)
    }

    fn choose(
        &mut self,
        form: Form,
        keeps: bool,
        (name, kind, bytes): (&str, FloatKind, usize),
        size: usize,
        gumbel: bool,
        merges: bool,
    ) -> Result<()> {
        let (kind, numbers, packing) = loads(kind, size);
        let infinity = if gumbel { Packing::One } else { packing }.infinity();
        let quantiles = if gumbel { NoiseArgs::Gumbel(tensor(&[196_608], 4)) } else { NoiseArgs::None };
        let kernel = choose_kernel::create_dummy_kernel(
            self.properties.clone(),
            self.target.clone(),
            CubeCount::Static(TILES, BATCH as u32, 1),
            CubeDim::new_1d(UNITS),
            AddressType::U32,
            numbers,
            tensor(&[BATCH, VOCABULARY], bytes),
            form.position(),
            tensor(&[BATCH], 4),
            quantiles,
            buffer(1 << 10),
            form.launch(),
            rows(keeps),
            buffer(1 << 20),
            TILES,
            VECTORS,
            35,
            20,
            0,
            false,
            merges,
            true,
            self.at_once,
            packing,
            infinity,
            kind,
        );
        let merging = if merges { "" } else { ", merged apart" };
        let last = format!("{}{merging}", noise(gumbel));
        let logits = format!("{name} by {size}");
        let parts = [&["choose", form.name, pool(keeps), &logits, &last], self.alone()].concat();
        self.case(&parts, kernel)
    }

    fn merge(&mut self) -> Result<()> {
        let kernel = merge_kernel::create_dummy_kernel(
            self.properties.clone(),
            self.target.clone(),
            CubeCount::Static(BATCH as u32, 1, 1),
            CubeDim::new_1d(UNITS),
            buffer(1 << 10),
            tensor(&[BATCH], 4),
            TILES,
            20,
            0,
            true,
        );
        self.case(&["merge"], kernel)
    }

    fn filter(
        &mut self,
        (name, kind, bytes): (&str, FloatKind, usize),
        digits: u32,
        by_mass: bool,
    ) -> Result<()> {
        let kind = ElemType::Float(kind);
        let size = 16 / bytes;
        let kernel = keep::create_dummy_kernel(
            self.properties.clone(),
            self.target.clone(),
            CubeCount::Static(BATCH as u32, 1, 1),
            CubeDim::new_1d(1024),
            AddressType::U32,
            size,
            tensor(&[BATCH, VOCABULARY], bytes),
            tensor(&[BATCH, VOCABULARY], bytes),
            tensor(&[1], 4),
            InputScalar::new(f32::NEG_INFINITY, kind),
            0,
            by_mass,
            digits,
            kind,
        );
        let wanted = if by_mass { "top-p" } else { "top-k" };
        self.case(&["filter", wanted, &format!("{name} by {size}")], kernel)
    }

    fn follow(&mut self, form: Form) -> Result<()> {
        let kernel = follow_kernel::create_dummy_kernel(
            self.properties.clone(),
            self.target.clone(),
            CubeCount::Static(1, 1, 1),
            CubeDim::new_1d(UNITS),
            form.position(),
            tensor(&[BATCH, 5], 4),
            form.launch(),
            tensor(&[BATCH, 5, 35], 4),
            1,
            0,
            4,
        );
        self.case(&["follow", form.name], kernel)
    }

    /// Writes the source of a kernel, after a line with its shared memory, which a launch gives it.
    fn case(&mut self, names: &[&str], kernel: impl CubeKernel) -> Result<()> {
        let name = names.join(", ");
        let refused = |error| Error::other(format!("{name}: {error}"));
        let definition = cubecl::define_kernel(&kernel).map_err(refused)?;
        let compiled = CppCompiler::<Cuda>::default().compile(definition, &options()).map_err(refused)?;
        let text = format!("// {} bytes of shared memory\n{}", compiled.shared_memory_size, compiled.source);
        self.count += 1;
        fs::write(self.folder.join(format!("{name}.cu")), text)
    }
}
