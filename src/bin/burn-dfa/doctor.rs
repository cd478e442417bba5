//! `burn-dfa doctor`: shows what this build can do, and checks its devices.

use std::num::NonZero;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{DType, Device, Int, Tensor};
use burn_dfa::cli::Backend;
use burn_dfa::processor::ConstraintProcessor;
use burn_dfa::tokens::RowPosition;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId, Vocabulary,
};
use clap::Args;
use serde_json::{Value, json};

use crate::output::{FOUND, Output, Result, Styles};

/// The versions of Burn and of CubeCL, its kernels, in `Cargo.lock`; a test compares them.
const BURN: &str = "0.22.1";
const CUBECL: &str = "0.11.3";

/// The features of a build that concern devices, and whether this build has them.
const FEATURES: [(&str, bool); 6] = [
    ("flex", cfg!(feature = "flex")),
    ("vulkan", cfg!(feature = "vulkan")),
    ("wgpu", cfg!(feature = "wgpu")),
    ("cuda", cfg!(feature = "cuda")),
    ("fusion", cfg!(feature = "fusion")),
    ("remote", cfg!(feature = "remote")),
];

/// The types of logits.
const DTYPES: [(&str, DType); 3] = [("f32", DType::F32), ("f16", DType::F16), ("bf16", DType::BF16)];

/// A small vocabulary; its last token ends a sequence.
const TOKENS: [Option<&str>; 8] =
    [Some("a"), Some("b"), Some("ab"), Some("ba"), Some("-"), Some("1"), Some("12"), None];
/// A constraint on texts of the vocabulary.
const PATTERN: &str = "[ab]+-[0-9]{2}";
/// The text `bab-12` of the constraint: `ba`, `b`, `-`, `12`, and the end.
const TEXT: [u32; 5] = [3, 1, 4, 6, 7];

/// Show the version and the features of this build, and check its devices.
///
/// On each device, the masks of a small constraint are computed and compared with the masks of the
/// host. Exit codes: 0, every device works; 1, a device fails, or its masks differ; 2, wrong usage,
/// such as a device that is not compiled in.
#[derive(Args)]
#[command(after_help = "Examples:
  burn-dfa doctor
  burn-dfa doctor --device wgpu
  burn-dfa doctor --device remote:ws://10.0.0.5:3000 --json")]
pub struct Doctor {
    /// Check this device: flex, vulkan, wgpu, cuda, or remote:ws://host:port; repeat the option for
    /// each device. Default: all local devices that are compiled in.
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<Backend>,
}

impl Doctor {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        if !out.json {
            writeln!(out.to, "burn-dfa   {}", env!("CARGO_PKG_VERSION"))?;
            writeln!(out.to, "burn       {BURN}, cubecl {CUBECL}")?;
            writeln!(out.to, "features   {}", features(true).join(", "))?;
            if !features(false).is_empty() {
                let add = "`cargo build --features cli,NAME` adds one";
                writeln!(out.to, "left out   {} ({add})", features(false).join(", "))?;
            }
        }
        let devices = if self.devices.is_empty() { local() } else { self.devices.clone() };
        let (mut all_work, mut rows) = (true, Vec::new());
        for backend in &devices {
            // A device may take seconds to compile its kernels.
            out.to.flush()?;
            let found = check(backend)?;
            all_work &= found.as_ref().is_ok_and(|found| found.difference.is_none());
            if out.json {
                rows.push(row(backend, found));
            } else {
                print(out, backend, found)?;
            }
        }
        if out.json {
            let (version, features) = (env!("CARGO_PKG_VERSION"), features(true));
            let line = json!({
                "burn_dfa": version, "burn": BURN, "cubecl": CUBECL, "features": features, "devices": rows,
            });
            writeln!(out.to, "{line}")?;
        }
        Ok(if all_work { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
    }
}

/// The names of the features that this build has, or lacks.
fn features(has: bool) -> Vec<&'static str> {
    FEATURES.into_iter().filter(|feature| feature.1 == has).map(|(name, _)| name).collect()
}

/// The devices of this machine that are compiled in.
fn local() -> Vec<Backend> {
    let all = [Backend::Flex, Backend::Vulkan, Backend::Wgpu, Backend::Cuda];
    let is_compiled_in = |backend: &Backend| features(true).iter().any(|name| *name == backend.to_string());
    all.into_iter().filter(is_compiled_in).collect()
}

/// What a working device offers.
struct Found {
    /// The device as it names itself.
    name: String,
    /// The operations that compute masks.
    kernels: &'static str,
    /// The supported types of logits.
    dtypes: Vec<&'static str>,
    /// The first difference between masks of the device and of the host.
    difference: Option<String>,
}

/// Checks the first device of `backend`. The inner error is the reason why the device fails.
fn check(backend: &Backend) -> Result<std::result::Result<Found, String>> {
    let device = match caught(|| backend.open()) {
        Ok(device) => device?,
        Err(panic) => return Ok(Err(panic)),
    };
    let found = caught(|| examine(backend, &device));
    Ok(found.and_then(|found| found.map_err(|error| error.to_string())))
}

/// The result of `work`, or the first line of the first panic, on this thread or on a thread of the
/// device.
fn caught<T>(work: impl FnOnce() -> T) -> std::result::Result<T, String> {
    let first: Arc<Mutex<Option<String>>> = Arc::default();
    let seen = first.clone();
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let message = panic.payload_as_str().and_then(|message| message.lines().next());
        let message = message.unwrap_or("a panic without a message").to_owned();
        seen.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
    }));
    let result = catch_unwind(AssertUnwindSafe(work));
    panic::set_hook(hook);
    let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
    result.map_err(|_| first.take().unwrap_or_default())
}

/// Compares masks on the device with masks on the host, for both forms and every type of logits.
fn examine(backend: &Backend, device: &Device) -> Result<Found> {
    let name = match (adapter(device), backend) {
        (Some((name, true)), _) if cfg!(feature = "vulkan") => {
            return Err(
                format!("{name}: a software Vulkan crashes on SPIR-V, the kernels of `vulkan`").into()
            );
        }
        (Some((name, is_software)), _) => {
            let kind = if is_software { "software" } else { "GPU" };
            format!("{name}, {kind}, first of {}", count(backend))
        }
        (None, Backend::Flex) => format!("CPU, {} threads, {}", threads(), simd()),
        (None, _) => "a device of the server".to_owned(),
    };
    let vocabulary = Vocabulary::from_bytes(TOKENS)?.with_eos([TokenId(7)])?;
    let (constraint, limits) = (Constraint::regex(PATTERN)?, Limits::default());
    let forms = [
        ("token-level", CompiledConstraint::compile_token_level(&constraint, &vocabulary, &limits)?),
        ("byte-level", CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &limits)?),
    ];
    let supported = DTYPES.into_iter().filter(|(_, dtype)| device.supports_dtype(*dtype));
    let dtypes: Vec<(&str, DType)> = supported.collect();
    let (mut is_fused, mut difference) = (true, None);
    for (form, compiled) in &forms {
        let tensors = DeviceConstraint::new(&[compiled], TOKENS.len(), &TensorOptions::new(), device)?;
        is_fused &= tensors.is_fused();
        let processor = ConstraintProcessor::new(tensors, &[0])?;
        for &(name, dtype) in &dtypes {
            let found = compare(&processor, compiled, dtype);
            let found = found.map(|found| format!("{found}, in the {form} form and the type {name}"));
            difference = difference.or(found);
        }
    }
    let kernels = match (is_fused, backend) {
        (false, _) => "Burn's built-in operations",
        (true, Backend::Flex) => "fused operations of burn-dfa on the CPU",
        (true, Backend::Remote(_)) => "fused operations of burn-dfa on the server",
        (true, _) => "fused CubeCL kernels of burn-dfa",
    };
    Ok(Found { name, kernels, dtypes: dtypes.into_iter().map(|(name, _)| name).collect(), difference })
}

/// The first difference along [`TEXT`] between logits masked on the device and on the host.
fn compare(processor: &ConstraintProcessor, constraint: &CompiledConstraint, dtype: DType) -> Option<String> {
    let device = processor.device_constraint().device();
    let (mut state, mut position) = (processor.start(), RowPosition::unlimited(constraint.start()));
    for (at, token) in TEXT.into_iter().enumerate() {
        let logits = Tensor::<2>::zeros([1, TOKENS.len()], (device, dtype));
        let masked = processor.mask(&state, logits).cast(DType::F32).into_data();
        let masked = masked.try_to_vec::<f32>().expect("logits of the type f32");
        let ids = (0..TOKENS.len() as u32).map(TokenId);
        let is_legal = ids.map(|id| constraint.can_end(&constraint.after(&position, id)));
        let expected: Vec<f32> = is_legal.map(|legal| if legal { 0.0 } else { f32::NEG_INFINITY }).collect();
        if masked != expected {
            return Some(format!("{masked:?} instead of {expected:?} after {at} tokens"));
        }
        state = processor.advance(state, Tensor::<1, Int>::from_data([token as i32], device));
        position = constraint.after(&position, TokenId(token));
    }
    None
}

/// The name of an adapter, and whether it is software; `None` for a device without an adapter.
#[cfg(any(feature = "vulkan", feature = "wgpu", feature = "cuda"))]
fn adapter(device: &Device) -> Option<(String, bool)> {
    device.identity().map(|identity| (identity.name, identity.physical.is_none()))
}

/// Without a GPU backend no device has an adapter.
#[cfg(not(any(feature = "vulkan", feature = "wgpu", feature = "cuda")))]
fn adapter(_: &Device) -> Option<(String, bool)> {
    None
}

/// Number of devices of a backend.
#[allow(clippy::match_single_binding, reason = "the arms depend on features")]
fn count(backend: &Backend) -> usize {
    match backend {
        #[cfg(feature = "vulkan")]
        Backend::Vulkan => Device::enumerate(burn::tensor::DeviceType::Vulkan).len(),
        #[cfg(feature = "wgpu")]
        Backend::Wgpu => Device::enumerate(burn::tensor::DeviceType::Wgpu).len(),
        #[cfg(feature = "cuda")]
        Backend::Cuda => Device::enumerate(burn::tensor::DeviceType::Cuda).len(),
        _ => 1,
    }
}

/// The number of threads of Flex.
fn threads() -> usize {
    let named = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse::<usize>().ok());
    let available = || std::thread::available_parallelism().map_or(1, NonZero::get);
    named.filter(|&threads| threads > 0).unwrap_or_else(available)
}

/// The widest vector instructions of this processor.
fn simd() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    let level = if std::arch::is_x86_feature_detected!("avx512vl") {
        "AVX-512"
    } else if std::arch::is_x86_feature_detected!("avx2") {
        "AVX2"
    } else {
        "SSE2"
    };
    #[cfg(target_arch = "aarch64")]
    let level = "NEON";
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let level = "no SIMD";
    level
}

/// What to do if a device fails.
fn remedy(backend: &Backend) -> &'static str {
    match backend {
        Backend::Flex => "report the message as a bug of burn-dfa",
        Backend::Vulkan | Backend::Wgpu if cfg!(feature = "vulkan") => {
            "install the driver of a GPU; a machine without a GPU needs a build with `wgpu` and without `vulkan`"
        }
        Backend::Vulkan | Backend::Wgpu => {
            "install a Vulkan driver, on Debian with `apt install mesa-vulkan-drivers libvulkan1`; without a display, set \
             XDG_RUNTIME_DIR to a writable folder"
        }
        Backend::Cuda => {
            "install the driver of NVIDIA and the CUDA toolkit, and set CUDA_PATH to the toolkit"
        }
        Backend::Remote(_) => "start burn-dfa-remote of this version on the server, and read its log",
    }
}

fn print(out: &mut Output, backend: &Backend, found: std::result::Result<Found, String>) -> Result<()> {
    let Styles { good, bad, strong, .. } = out.styles;
    writeln!(out.to, "{strong}{backend}{strong:#}")?;
    match found {
        Ok(found) => {
            writeln!(out.to, "  device:  {}", found.name)?;
            writeln!(out.to, "  kernels: {}", found.kernels)?;
            writeln!(out.to, "  dtypes:  {}", found.dtypes.join(", "))?;
            match found.difference {
                None => writeln!(out.to, "  masks:   {good}equal{good:#}")?,
                Some(difference) => {
                    writeln!(out.to, "  masks:   {bad}differ{bad:#}: {difference}")?;
                    writeln!(
                        out.to,
                        "  remedy:  update the driver, or report this output as a bug of burn-dfa"
                    )?;
                }
            }
        }
        Err(reason) => {
            writeln!(out.to, "  {bad}failed{bad:#}:  {reason}")?;
            writeln!(out.to, "  remedy:  {}", remedy(backend))?;
        }
    }
    Ok(())
}

/// A device as JSON.
fn row(backend: &Backend, found: std::result::Result<Found, String>) -> Value {
    let backend_name = backend.to_string();
    match found {
        Ok(Found { name, kernels, dtypes, difference }) => {
            let masks = difference.unwrap_or_else(|| "equal".to_owned());
            json!({"backend": backend_name, "device": name, "kernels": kernels, "dtypes": dtypes, "masks": masks})
        }
        Err(reason) => json!({"backend": backend_name, "error": reason, "remedy": remedy(backend)}),
    }
}
