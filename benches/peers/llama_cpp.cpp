// llama.cpp's converter from JSON schemas to GBNF, and its matcher of grammars, as a library for instances.py.
//
// LLAMA is a folder with the sources of llama.cpp, such as `vendor/llama.cpp` in the source archive of llama-cpp-python.
// Functions for tokens of a vocabulary stay unresolved, since texts are matched as characters:
//
//     cd LLAMA && g++ -O2 -std=c++17 -shared -fPIC -o libgrammar.so -Icommon -Isrc -Iinclude -Iggml/include -Ivendor \
//         PATH/benches/peers/llama_cpp.cpp common/{json-schema-to-grammar,json-schema,json,trie,unicode}.cpp \
//         src/{llama-grammar,unicode,unicode-data}.cpp

#include "json-schema-to-grammar.h"
#include "llama-grammar.h"
#include "llama-impl.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

// What the converter needs of common.cpp, which would need all of llama.cpp.

std::string string_join(const std::vector<std::string> & values, const std::string & separator) {
    std::string joined;
    for (const auto & value : values) {
        joined += (&value == &values.front() ? "" : separator) + value;
    }
    return joined;
}

std::vector<std::string> string_split(const std::string & text, const std::string & delimiter) {
    std::vector<std::string> parts(1);
    for (size_t at = 0; at < text.size();) {
        if (text.compare(at, delimiter.size(), delimiter) == 0) {
            parts.emplace_back();
            at += delimiter.size();
        } else {
            parts.back() += text[at++];
        }
    }
    return parts;
}

std::string string_repeat(const std::string & text, size_t count) {
    std::string repeated;
    while (count-- > 0) {
        repeated += text;
    }
    return repeated;
}

void llama_log_internal(ggml_log_level, const char *, ...) {}

extern "C" void ggml_abort(const char *, int, const char *, ...) {
    std::abort();
}

extern "C" {

// A matcher at the start of a schema's text, or null with a message.
void * grammar_compile(const char * schema, char * message, size_t size) {
    try {
        std::string text = json_schema_to_grammar(common_json::parse(schema), true);
        void * grammar = llama_grammar_init_impl(nullptr, text.c_str(), "root", false, nullptr, 0, nullptr, 0);
        if (!grammar) {
            std::strncpy(message, "its grammar is not read", size - 1);
        }
        return grammar;
    } catch (const std::exception & error) {
        std::strncpy(message, error.what(), size - 1);
        return nullptr;
    }
}

void * grammar_clone(void * grammar) {
    return llama_grammar_clone_impl(*static_cast<llama_grammar *>(grammar));
}

void grammar_free(void * grammar) {
    llama_grammar_free_impl(static_cast<llama_grammar *>(grammar));
}

// Whether the bytes of a token may follow.
bool grammar_accept(void * grammar, const char * bytes, size_t size) {
    try {
        auto * matcher = static_cast<llama_grammar *>(grammar);
        llama_grammar_accept_token(*matcher, 0, std::string(bytes, size));
        return !llama_grammar_get_stacks(matcher).empty();
    } catch (const std::exception &) {
        return false;
    }
}

// Whether the text may end.
bool grammar_may_end(void * grammar) {
    for (const auto & stack : llama_grammar_get_stacks(static_cast<llama_grammar *>(grammar))) {
        if (stack.empty()) {
            return true;
        }
    }
    return false;
}
}
