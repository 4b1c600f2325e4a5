package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Names of tensors and layers. */
class TensorNamesTest {
  private static final List<String> ALL =
      List.of(
          "embed",
          "model.layers.3.q",
          "model.layers.3.k",
          "model.layers.30.q",
          "blk.3.k",
          "layers.3");

  @Test
  void layersStandForAllThatIsInThem() {
    assertThat(TensorNames.of(ALL, List.of("layers.30", "embed", "blk.3")))
        .containsExactly("model.layers.30.q", "embed", "blk.3.k");
    assertThat(TensorNames.of(ALL, List.of("model.layers.3")))
        .containsExactly("model.layers.3.q", "model.layers.3.k");
    // A tensor that is called so comes before a layer.
    assertThat(TensorNames.of(ALL, List.of("layers.3"))).containsExactly("layers.3");
  }

  @ParameterizedTest
  @ValueSource(strings = {"layers.4", "ayers.3", "", "embed.x", "layers.3.q.x"})
  void whatStandsForNothingIsRefused(String name) {
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> TensorNames.of(ALL, List.of(name)))
        .withMessageContaining("'" + name + "'");
  }

  @Test
  void twiceIsRefused() {
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> TensorNames.of(ALL, List.of("model.layers.3.q", "model.layers.3")))
        .withMessageContaining("twice");
  }
}
