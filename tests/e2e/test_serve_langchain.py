# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`llamac serve` as LangChain sees it: the tests that LangChain has for the chat
models it knows, by its client of OpenAI's interface. They are pytest's."""

import os
import sys

import support

support.require("langchain_openai", "langchain_tests", "pytest")

import pytest
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

import serving
from support import require_model

BEYOND_THE_MODEL = pytest.mark.xfail(reason="asks more of the answer than a model of 135 million parameters knows")


class Served(serving.ServedTestCase):
    options = (
        "--chat-template",
        require_model(os.path.join("chat-templates", "Qwen-Qwen2.5-7B-Instruct.jinja")),
        "--parallel",
        4,
    )


@pytest.fixture(autouse=True, scope="session")
def server():
    Served.setUpClass()
    yield
    Served.doClassCleanups()


class TestLangChain(ChatModelIntegrationTests):
    @property
    def chat_model_class(self):
        return ChatOpenAI

    @property
    def chat_model_params(self):
        # The penalty keeps so small a model from repeating itself for ever.
        return {
            "model": serving.MODEL,
            "base_url": f"{Served.server.url}/v1",
            "api_key": "none",
            "temperature": 0,
            "max_tokens": 150,
            "frequency_penalty": 0.4,
            "stream_usage": True,
            "max_retries": 0,
        }

    # Left out are models of other names, as one is served; images, audio and
    # documents, which the models cannot read; Anthropic's form of messages.
    @property
    def supports_json_mode(self):
        return True

    @property
    def has_tool_choice(self):
        return True

    @property
    def supports_model_override(self):
        return False

    @BEYOND_THE_MODEL
    def test_json_mode(self, model):
        super().test_json_mode(model)

    @BEYOND_THE_MODEL
    def test_agent_loop(self, model):
        super().test_agent_loop(model)


if __name__ == "__main__":
    # LangChain's client keeps connections, which belong to a loop.
    loops = ("auto", "session", "session")
    names = ("asyncio_mode", "asyncio_default_fixture_loop_scope", "asyncio_default_test_loop_scope")
    options = [f"--override-ini={name}={value}" for name, value in zip(names, loops)]
    sys.exit(pytest.main([__file__, "-p", "no:cacheprovider", *options, "--tb=short", "-rsx", *sys.argv[1:]]))
