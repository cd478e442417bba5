//! Cases of other projects: outputs read by llama.cpp, and outputs accepted by XGrammar's tags of
//! models.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::flexible;
use crate::{Reasoning, ToolFormat, Tools};

/// The rows of a file of cases; none if the data is missing.
fn rows(name: &str) -> Vec<Value> {
    let Some(folder) = std::env::var_os("BURN_DFA_DATA").map(PathBuf::from) else { return Vec::new() };
    let text = fs::read_to_string(folder.join("cases").join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[ignore = "it needs the cases in the folder that BURN_DFA_DATA names"]
fn outputs_read_as_llama_cpp_reads_them() {
    let (mut same, mut invalid) = (0, 0);
    for row in rows("llamacpp_chat-request.jsonl") {
        let request = &row["grammar"];
        let template = request["template"].as_str().unwrap_or_default();
        let known = [
            ("Qwen3-Coder", ToolFormat::QwenXml),
            ("Qwen3.5", ToolFormat::QwenXml),
            ("NVIDIA-Nemotron-3", ToolFormat::QwenXml),
            ("StepFun", ToolFormat::QwenXml),
            ("NousResearch-Hermes", ToolFormat::Hermes),
            ("mistralai-Mistral-Nemo", ToolFormat::Mistral),
            ("meta-llama", ToolFormat::Llama31),
            ("deepseek-ai-DeepSeek-R1", ToolFormat::DeepSeek),
            ("openai-gpt-oss", ToolFormat::Harmony),
        ];
        let Some((_, format)) = known.iter().find(|(begin, _)| template.starts_with(begin)) else { continue };
        if request.get("json_schema").is_some() || request["reasoning_format"] == "none" {
            continue;
        }
        let mut tools = Tools::from_request(request).unwrap().with_format(*format);
        for (output, parsed) in row["parsed"].as_object().unwrap() {
            if *format == ToolFormat::Harmony {
                tools = tools.with_reasoning(format.reasoning().unwrap());
            } else if output.contains("</think>") {
                tools = tools.with_reasoning(Reasoning::think().opened());
            }
            let matches = flexible(&tools).matches(output.as_bytes());
            let Ok(reply) = tools.read(output) else {
                assert!(!matches, "{output}");
                invalid += 1;
                println!("{} {template}: not our format: {output:?}", row["id"]);
                continue;
            };
            let read: Vec<Value> = reply
                .calls
                .iter()
                .map(|call| json!({"name": call.name, "arguments": call.value().unwrap()}))
                .collect();
            let theirs = parsed["tool_calls"].as_array().cloned().unwrap_or_default();
            let text = |name: &str| parsed[name].as_str().unwrap_or_default().trim().to_owned();
            let ours = (read, reply.content.trim().to_owned(), reply.reasoning.trim().to_owned());
            if ours == (theirs, text("content"), text("reasoning")) {
                same += 1;
            } else {
                println!("{} {template}: {ours:?}, valid {matches}\n  theirs {parsed}", row["id"]);
            }
        }
    }
    println!("{same} alike, {invalid} not of our formats");
}

#[test]
#[ignore = "it needs the cases in the folder that BURN_DFA_DATA names"]
fn tags_of_models_accept_outputs_that_xgrammar_accepts() {
    let (mut same, mut other) = (0, 0);
    for row in rows("xgrammar-structural_tag.jsonl") {
        let Some(builtin) = row.get("builtin") else { continue };
        let model = builtin["model"].as_str().or(builtin["args"][0].as_str()).unwrap_or_default();
        let format = match model {
            "llama" => ToolFormat::Llama31,
            "qwen_3" => ToolFormat::Hermes,
            "qwen_3_coder" | "qwen_3_5" => ToolFormat::QwenXml,
            "deepseek_r1" => ToolFormat::DeepSeek,
            "deepseek_v3_1" => ToolFormat::DeepSeekV31,
            "harmony" => ToolFormat::Harmony,
            _ => continue,
        };
        // Their functions do without a type.
        let mut builtin = builtin.clone();
        for tool in builtin["tools"].as_array_mut().into_iter().flatten() {
            if tool.get("function").is_some() {
                tool["type"] = json!("function");
            }
        }
        let Ok(tools) = Tools::from_request(&builtin) else {
            println!("{} {model}: not our tools", row["id"]);
            continue;
        };
        let automaton = flexible(&tools.with_format(format));
        for (list, taken) in [("accepts", true), ("rejects", false)] {
            for text in row[list].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if automaton.matches(text.as_bytes()) == taken {
                    same += 1;
                } else {
                    other += 1;
                    println!("{} {model} {list}: {text:?}", row["id"]);
                }
            }
        }
    }
    println!("{same} alike, {other} not");
}
