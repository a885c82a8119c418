"""A tokenizer of bytes for trainers, made here because no network is asked."""

CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A template in which what is written of a message does not depend on those before it."""


def tiny_tokenizer(folder=None):
    """A tokenizer with the template ``CHAT``; ``folder`` gets its files."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from tokenizers.trainers import BpeTrainer
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    special = {"pad_token": "<pad>", "eos_token": "<|im_end|>"}
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words.train_from_iterator(
        [], BpeTrainer(special_tokens=[*special.values(), "<|im_start|>"], initial_alphabet=alphabet)
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, **special)
    tokenizer.chat_template = CHAT
    if folder is not None:
        tokenizer.save_pretrained(folder)
    return tokenizer
