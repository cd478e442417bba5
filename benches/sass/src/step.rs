//! The kernels of a step and of top-k and top-p, from the library's own files.

#[path = "../../../src/kernel/step/advance.rs"]
mod advance;
#[path = "../../../src/kernel/step/choose.rs"]
mod choose;
#[path = "../../../src/kernel/step/follow.rs"]
mod follow;
#[path = "../../../src/kernel/step/lookup.rs"]
mod lookup;
#[path = "../../../src/kernel/step/mask.rs"]
mod mask;
#[path = "../../../src/kernel/step/noise.rs"]
mod noise;
#[path = "../../../src/kernel/step/packing.rs"]
mod packing;
#[path = "../../../src/kernel/step/rows.rs"]
mod rows;
#[path = "../../../src/kernel/filter/search.rs"]
mod search;
#[path = "../../../src/kernel/step/stack.rs"]
mod stack;
#[path = "../../../src/kernel/step/tile.rs"]
mod tile;
#[path = "../../../src/kernel/filter/weight.rs"]
#[allow(dead_code, reason = "the kernel takes the constants alone")]
mod weight;

#[path = "cases.rs"]
pub(crate) mod cases;
#[path = "device.rs"]
mod device;
#[cfg(test)]
#[path = "loads.rs"]
mod loads;
