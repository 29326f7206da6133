troupe_test(golden_text SOURCES text_test.cpp
  LINKS troupe_engine_train troupe_engine_checkpoint troupe_engine_tokenizer LABELS golden)
