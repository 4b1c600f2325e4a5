package io.gpunvme.models.format;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.fs.BytesReader;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Random models are read as what they are. */
class HeaderPropertiesTest {
  private static final int MODELS = 400;

  @Test
  void randomModels() {
    Cases cases = Cases.announce("random models");
    for (int number : cases.numbers(MODELS)) {
      SplittableRandom random = cases.random(number);
      boolean gguf = number % 2 == 0;
      RandomModel model = gguf ? RandomModel.gguf(random) : RandomModel.safetensors(random);
      BytesReader reader = new BytesReader(model.file);
      ModelHeader header = ModelFiles.readHeader(reader);
      assertThat(header.format()).startsWith(gguf ? "GGUF" : "safetensors");
      assertThat(header.tensors())
          .as(cases.describe(number))
          .containsExactlyElementsOf(model.tensors);
      HeaderChecks.checkConsistent(header, reader);
    }
  }
}
