package io.gpunvme.models.format;

import static io.gpunvme.models.format.SafetensorsBytes.entry;
import static io.gpunvme.models.format.SafetensorsBytes.file;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.gpunvme.models.format.FormatException.Kind;
import io.gpunvme.storage.fs.BlockReader;
import io.gpunvme.storage.fs.BytesReader;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ModelFilesTest {
  private static final String INDEX = "model.safetensors.index.json";
  private static final String ONE = "model-00001-of-00002.safetensors";
  private static final String TWO = "model-00002-of-00002.safetensors";

  /** Files in memory, which knows what was opened. */
  private static final class Memory implements ModelFolder {
    final Map<String, byte[]> files = new LinkedHashMap<>();
    final List<BytesReader> opened = new ArrayList<>();

    Memory with(String name, byte[] bytes) {
      files.put(name, bytes);
      return this;
    }

    Memory with(String name, String text) {
      return with(name, text.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public String name() {
      return "folder";
    }

    @Override
    public List<String> files() {
      return List.copyOf(files.keySet());
    }

    @Override
    public Optional<BlockReader> open(String name) {
      if (!files.containsKey(name)) {
        return Optional.empty();
      }
      opened.add(new BytesReader(files.get(name)));
      return Optional.of(opened.getLast());
    }
  }

  private static byte[] tensors(String... names) {
    StringBuilder header = new StringBuilder("{");
    for (int i = 0; i < names.length; i++) {
      header
          .append(i == 0 ? "" : ",")
          .append('"')
          .append(names[i])
          .append("\":")
          .append(entry("U8", "[1]", i, i + 1));
    }
    return file(header + "}", names.length);
  }

  private static Memory sharded(String index) {
    return new Memory()
        .with(INDEX, index)
        .with(TWO, tensors("c", "d"))
        .with(ONE, tensors("a", "b"));
  }

  private static String map(String... pairs) {
    StringBuilder map = new StringBuilder();
    for (int i = 0; i < pairs.length; i += 2) {
      map.append(i == 0 ? "" : ",")
          .append('"')
          .append(pairs[i])
          .append("\":\"")
          .append(pairs[i + 1])
          .append('"');
    }
    return "{\"metadata\":{\"total_size\":4},\"weight_map\":{" + map + "}}";
  }

  private static FormatException refused(Memory folder, String name, Kind kind, String message) {
    FormatException e =
        catchThrowableOfType(FormatException.class, () -> ModelFiles.open(folder, name));
    assertThat(e).isNotNull().hasMessageContaining(message);
    assertThat(e.kind()).as(e.getMessage()).isEqualTo(kind);
    assertThat(folder.opened).allSatisfy(reader -> assertThat(reader.isClosed()).isTrue());
    return e;
  }

  // ---- safetensors with an index

  @Test
  void shardsAreFoundByTheIndex() {
    Memory folder = sharded(map("d", TWO, "a", ONE, "c", TWO, "b", ONE));
    assertThat(ModelFiles.find(folder)).isEqualTo(INDEX);
    try (ModelFiles model = ModelFiles.open(folder, INDEX)) {
      assertThat(model.files()).extracting(ModelFiles.ModelFile::name).containsExactly(ONE, TWO);
      assertThat(model.tensors().keySet()).containsExactly("a", "b", "c", "d");
      assertThat(model.tensors().get("d").file()).isEqualTo(1);
      assertThat(model.tensors().get("d").tensor().name()).isEqualTo("d");
      assertThat(model.unnamed()).isEmpty();
      assertThat(folder.opened.getLast().isClosed()).isFalse();
    }
    assertThat(folder.opened).hasSize(3).allSatisfy(r -> assertThat(r.isClosed()).isTrue());
  }

  @Test
  void whatTheIndexDoesNotNameIsTold() {
    Memory folder = sharded(map("d", TWO, "a", ONE));
    folder.with(TWO, tensors("a", "d"));
    try (ModelFiles model = ModelFiles.open(folder, INDEX)) {
      assertThat(model.tensors().keySet()).containsExactly("a", "d");
      assertThat(model.tensors().get("a").file()).isZero();
      assertThat(model.unnamed()).containsExactly(ONE + ": b", TWO + ": a");
    }
  }

  @Test
  void aMissingShardIsNamed() {
    Memory folder = sharded(map("a", ONE, "c", TWO));
    folder.files.remove(TWO);
    refused(folder, INDEX, Kind.MISSING, "no file '" + TWO + "', which memory names");
    refused(new Memory(), INDEX, Kind.MISSING, "no file '" + INDEX + "'");
  }

  @Test
  void aTensorThatIsElsewhereIsNamed() {
    FormatException e =
        refused(sharded(map("a", ONE, "b", TWO, "c", TWO)), INDEX, Kind.MISSING, "not in '" + TWO);
    assertThat(e.tensor()).isEqualTo("b");
    refused(sharded(map("e", ONE)), INDEX, Kind.MISSING, "tensor 'e'");
  }

  @Test
  void aBrokenShardClosesAll() {
    Memory folder = sharded(map("a", ONE, "c", TWO)).with(TWO, "no model");
    refused(folder, INDEX, Kind.NOT_THIS_FORMAT, "only 8 bytes");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", ".", "..", "../x.safetensors", "/x.safetensors", "a/b", "a\\\\b", "x\\u0000y"})
  void filesOutsideTheFolderAreRefused(String name) {
    refused(sharded(map("a", name)), INDEX, Kind.CORRUPT, "is not a plain name");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "[]",
        "{\"weight_map\":[]}",
        "{\"weight_map\":{\"a\":1}}",
        "{\"weight_map\":{\"a\":\"x\",\"a\":\"y\"}}",
        "{\"weight_map\":{},\"weight_map\":{}}",
        "{\"weight_map\":{}} x",
        "{\"weight_map\":{},}",
        "{\"metadata\":[],\"weight_map\":{}}"
      })
  void whatIsNoIndex(String text) {
    refused(new Memory().with(INDEX, text), INDEX, Kind.CORRUPT, "memory");
  }

  @Test
  void anIndexSaysMore() {
    byte[] text =
        ("\n"
             + "{\"x\":{\"y\":[1]},\"metadata\":{\"total_size\":1.5e3,\"a\":\"b\",\"c\":null,\"d\":true},\"weight_map\":{}}\n")
            .getBytes(StandardCharsets.UTF_8);
    SafetensorsIndex index = SafetensorsIndex.read(new BytesReader(text));
    assertThat(index.metadata())
        .isEqualTo(Map.of("total_size", "1.5e3", "a", "b", "c", "", "d", "true"));
    assertThat(index.shards()).isEmpty();
    refused(new Memory().with(INDEX, "{}"), INDEX, Kind.NOT_THIS_FORMAT, "no weight_map");
    assertThatThrownBy(() -> SafetensorsIndex.read(new BytesReader(new byte[1], 100_000_001)))
        .hasMessageContaining("more than 100000000 bytes");
  }

  // ---- split GGUF

  private static byte[] part(int number, int count, int all, String... names) {
    GgufBytes file =
        GgufBytes.start(names.length, 3)
            .key("split.no", GgufBytes.U16)
            .i16(number)
            .key("split.count", GgufBytes.U16)
            .i16(count)
            .key("split.tensors.count", GgufBytes.I32)
            .i32(all);
    for (int i = 0; i < names.length; i++) {
      file.tensor(names[i], 24, 32L * i, 1);
    }
    return names.length == 0 ? file.bytes() : file.pad(32).zeros(32 * names.length).bytes();
  }

  private static String partName(int number, int count) {
    return "a%%d-%05d-of-%05d.gguf".formatted(number, count);
  }

  private static Memory split() {
    return new Memory()
        .with(partName(1, 3), part(0, 3, 3))
        .with(partName(3, 3), part(2, 3, 3, "c"))
        .with(partName(2, 3), part(1, 3, 3, "a", "b"));
  }

  @Test
  void anyPartLeadsToAll() {
    assertThat(ModelFiles.find(split())).isEqualTo(partName(1, 3));
    for (int i = 1; i <= 3; i++) {
      try (ModelFiles model = ModelFiles.open(split(), partName(i, 3))) {
        assertThat(model.files()).hasSize(3);
        assertThat(model.tensors().keySet()).containsExactly("a", "b", "c");
        assertThat(model.tensors().get("c").file()).isEqualTo(2);
      }
    }
  }

  @Test
  void partsThatDoNotBelongTogether() {
    String first = partName(1, 3);
    Memory missing = split();
    missing.files.remove(partName(2, 3));
    refused(missing, first, Kind.MISSING, partName(2, 3));
    refused(split().with(partName(2, 3), part(2, 3, 3, "a", "b")), first, Kind.CORRUPT, "split.no");
    refused(split().with(partName(2, 3), part(1, 4, 3, "a")), first, Kind.CORRUPT, "split.count");
    refused(
        split().with(partName(2, 3), part(1, 3, 3, "a")),
        first,
        Kind.CORRUPT,
        "split.tensors.count");
    refused(
        split().with(partName(2, 3), part(1, 3, 3, "a", "c")),
        first,
        Kind.CORRUPT,
        "it is in " + partName(2, 3) + " too");
    refused(
        split().with(partName(2, 3), GgufBytes.start(0, 0).bytes()),
        first,
        Kind.CORRUPT,
        "split.no is missing");
    refused(new Memory().with("a.gguf", part(0, 3, 3)), "a.gguf", Kind.MISSING, "part 1 of 3");
    refused(split(), partName(4, 3), Kind.CORRUPT, "part 4 of 3");
    refused(split(), partName(0, 3), Kind.CORRUPT, "part 0 of 3");
    refused(
        new Memory().with("x-00001-of-99999.gguf", part(0, 2, 0)),
        "x-00001-of-99999.gguf",
        Kind.MISSING,
        "x-00002-of-99999.gguf");
  }

  @Test
  void onePartOfOneIsWhole() {
    Memory folder = new Memory().with(partName(1, 1), GgufBytes.start(0, 0).bytes());
    try (ModelFiles model = ModelFiles.open(folder, partName(1, 1))) {
      assertThat(model.tensors()).isEmpty();
    }
  }

  // ---- folders

  @Test
  void aFolderWithOneModel() {
    assertThat(ModelFiles.find(new Memory().with("x.gguf", "").with("config.json", "")))
        .isEqualTo("x.gguf");
    assertThat(ModelFiles.find(new Memory().with("m.safetensors", "").with("README.md", "")))
        .isEqualTo("m.safetensors");
    assertThatThrownBy(() -> ModelFiles.find(new Memory().with("a.gguf", "").with("b.gguf", "")))
        .hasMessageContaining("several models; name one of: a.gguf, b.gguf");
    assertThatThrownBy(() -> ModelFiles.find(new Memory()))
        .hasMessageContaining("no *.safetensors, *.safetensors.index.json or *.gguf");
  }

  @Test
  void filesOfTheSystem(@TempDir Path folder) throws IOException {
    Memory memory = sharded(map("a", ONE, "b", ONE, "c", TWO, "d", TWO));
    for (Map.Entry<String, byte[]> file : memory.files.entrySet()) {
      Files.write(folder.resolve(file.getKey()), file.getValue());
    }
    try (ModelFiles model = ModelFiles.open(folder)) {
      assertThat(model.tensors()).hasSize(4);
      assertThat(model.files().getFirst().header().file()).endsWith(ONE);
    }
    try (ModelFiles model = ModelFiles.open(folder.resolve(TWO))) {
      assertThat(model.tensors().keySet()).containsExactly("c", "d");
    }
    Files.createDirectory(folder.resolve("x.gguf"));
    assertThatThrownBy(() -> ModelFiles.open(folder.resolve("y.gguf")))
        .isInstanceOf(FormatException.class)
        .hasMessageContaining("no file 'y.gguf'");
    try (ModelFiles model = ModelFiles.open(folder.resolve("x.gguf").resolve("..").resolve(ONE))) {
      assertThat(model.tensors()).hasSize(2);
    }
    assertThatThrownBy(() -> ModelFiles.open(folder.resolve("none").resolve(ONE)))
        .isInstanceOf(FormatException.class);
    assertThatThrownBy(() -> ModelFiles.open(Path.of("/"))) //
        .isInstanceOfAny(FormatException.class, StorageException.class);
  }
}
