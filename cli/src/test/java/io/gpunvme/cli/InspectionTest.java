package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.gpunvme.nvme.spec.FieldValue;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.SmartLog;
import io.gpunvme.nvme.spec.Structure;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands that only look. */
class InspectionTest {
  private static long number(JsonObject fields, String name) {
    return fields.getAsJsonObject(name).get("value").getAsLong();
  }

  // ---- list

  @Test
  void listShowsTheNamespacesOfDevices() {
    String second = "sim:serial=B,size=1MiB,ns2.size=2MiB,ns2.lba=4096";
    Cli.Result text = Cli.run("list", "sim:serial=A", second).succeeded();
    assertThat(text.out().lines()).hasSize(4);
    assertThat(text.out()).containsPattern("sim:serial=A +1 +64MiB +512");
    assertThat(text.out()).containsPattern("serial=B\\S+ +2 +2MiB +4096");

    JsonArray devices =
        Cli.run("list", "sim:serial=A", second, "--json").json().getAsJsonArray("devices");
    JsonObject b = devices.get(1).getAsJsonObject();
    assertThat(b.get("serial").getAsString()).isEqualTo("B");
    JsonObject ns2 = b.getAsJsonArray("namespaces").get(1).getAsJsonObject();
    assertThat(ns2.get("nsid").getAsInt()).isEqualTo(2);
    assertThat(ns2.get("block_size").getAsInt()).isEqualTo(4096);
    assertThat(ns2.get("bytes").getAsLong()).isEqualTo(2 << 20);
  }

  // ---- identify

  @Test
  void identifyDecodesEveryField() {
    String out = Cli.run("identify", "sim:size=1GiB,lba=4096,serial=XYZ").succeeded().out();

    assertThat(out).startsWith("gpunvme embedded controller, serial XYZ, firmware 1.0, NVMe 1.4.0");
    assertThat(out).contains("namespace 1: 262144 blocks of 4096 (1GiB)");
    for (FieldValue field :
        new IdentifyController(MemorySegment.ofArray(new byte[4096])).fields()) {
      assertThat(out).contains("\n  " + field.name() + " ").contains(field.meaning());
    }
    assertThat(out).containsPattern("\n  NSZE +262144 +Namespace Size");
  }

  @Test
  void identifyAsJson() {
    JsonObject json =
        Cli.run("identify", "sim:size=8MiB,mdts=64KiB,queues=3", "--json").succeeded().json();

    assertThat(json.get("max_transfer_bytes").getAsLong()).isEqualTo(64 << 10);
    assertThat(json.get("max_queue_pairs").getAsInt()).isEqualTo(3);
    assertThat(number(json.getAsJsonObject("controller"), "MDTS")).isEqualTo(4);
    assertThat(
            json.getAsJsonObject("controller").getAsJsonObject("MDTS").get("meaning").getAsString())
        .contains("Maximum Data Transfer Size");
    JsonObject namespace = json.getAsJsonArray("namespaces").get(0).getAsJsonObject();
    assertThat(namespace.get("blocks").getAsLong()).isEqualTo(16384);
    assertThat(number(namespace.getAsJsonObject("fields"), "NSZE")).isEqualTo(16384);
  }

  @Test
  void identifyOfOneNamespaceLeavesTheRestOut() {
    String device = "sim:size=1MiB,ns2.size=2MiB";
    JsonObject json = Cli.run("identify", device, "--nsid", 2, "--json").succeeded().json();

    assertThat(json.has("controller")).isFalse();
    assertThat(json.getAsJsonArray("namespaces")).hasSize(1);
    assertThat(Cli.run("identify", device, "--nsid", 2).succeeded().out())
        .contains("namespace 2")
        .doesNotContain("Identify Controller")
        .doesNotContain("namespace 1");
  }

  /** JSON keys them by name, so a name used twice would hide a field. */
  @Test
  void fieldNamesAreUnique() {
    MemorySegment page = MemorySegment.ofArray(new byte[4096]);
    for (Structure structure :
        List.of(new IdentifyController(page), new IdentifyNamespace(page), new SmartLog(page))) {
      assertThat(structure.fields()).extracting(FieldValue::name).doesNotHaveDuplicates();
    }
  }

  // ---- regs

  @Test
  void regsShowsRegistersAndBringUp() {
    String out = Cli.run("regs", "sim:mqes=255,to=4").succeeded().out();

    assertThat(out).containsPattern("0000h CAP +0x[0-9a-f]{16}  Controller Capabilities");
    assertThat(out).containsPattern("\n  MQES +255 ").containsPattern("\n  TO +4 ");
    assertThat(out).contains("001Ch CSTS    0x00000001").contains("WAIT_READY");
  }

  @Test
  void regsAsJson() {
    JsonObject json = Cli.run("regs", "sim:dstrd=2", "--json").succeeded().json();
    JsonObject registers = json.getAsJsonObject("registers");

    JsonObject cap = registers.getAsJsonObject("CAP");
    assertThat(cap.get("bytes").getAsInt()).isEqualTo(8);
    assertThat(number(cap.getAsJsonObject("fields"), "DSTRD")).isEqualTo(2);
    assertThat(registers.getAsJsonObject("VS").get("value").getAsString()).isEqualTo("0x00010400");
    assertThat(number(registers.getAsJsonObject("CC").getAsJsonObject("fields"), "EN")).isOne();
    assertThat(registers.getAsJsonObject("AQA").get("offset").getAsInt()).isEqualTo(0x24);
    assertThat(json.getAsJsonArray("bring_up")).isNotEmpty();
  }

  // ---- log

  @Test
  void smartLog() {
    assertThat(Cli.run("log", "sim:", "smart").succeeded().out())
        .startsWith("SMART / Health Information")
        .containsPattern("\n  AVAILABLE_SPARE +100 ");
    JsonObject json = Cli.run("log", "sim:", "SMART", "--json").succeeded().json();
    assertThat(json.get("page").getAsString()).isEqualTo("smart");
    assertThat(number(json.getAsJsonObject("fields"), "AVAILABLE_SPARE")).isEqualTo(100);
  }

  @Test
  void errorLog() {
    assertThat(Cli.run("log", "sim:", "error").succeeded().out()).contains("no entries");

    // A command of the bring-up that may fail: Identify with CNS 3.
    String fault = "status=generic/internal-error more on identify dw10=0x3/0xff";
    assertThat(Cli.run("log", "sim:", "error", "--faults", fault).succeeded().out())
        .startsWith("Error Information: Internal Error")
        .containsPattern("\n  NSID +1 ");
    JsonArray entries =
        Cli.run("log", "sim:", "error", "--faults", fault, "--json")
            .succeeded()
            .json()
            .getAsJsonArray("entries");
    assertThat(entries).hasSize(1);
    JsonObject entry = entries.get(0).getAsJsonObject();
    assertThat(entry.get("status").getAsString()).startsWith("Internal Error");
    assertThat(number(entry.getAsJsonObject("fields"), "SQID")).isZero();
  }

  @Test
  void firmwareLog() {
    assertThat(Cli.run("log", "sim:firmware=9.8", "firmware").succeeded().out())
        .containsPattern("\n  FRS1 +9.8 ");
    JsonObject json = Cli.run("log", "sim:", "firmware", "--json").succeeded().json();
    assertThat(number(json.getAsJsonObject("fields"), "AFI")).isOne();
  }

  @Test
  void effectsLogNamesTheCommands() {
    assertThat(Cli.run("log", "sim:", "effects").succeeded().out())
        .containsPattern("io +01h +Write +changes blocks")
        .containsPattern("admin +06h +Identify");
    JsonArray commands =
        Cli.run("log", "sim:", "effects", "--json").json().getAsJsonArray("commands");
    assertThat(commands)
        .map(JsonElement::getAsJsonObject)
        .anyMatch(
            c ->
                c.get("set").getAsString().equals("io")
                    && c.get("opcode").getAsInt() == 2
                    && c.get("name").getAsString().equals("Read"));
  }

  @Test
  void changedNamespaces() {
    assertThat(Cli.run("log", "sim:", "changed").succeeded().out()).contains("none changed");
    assertThat(Cli.run("log", "sim:", "changed", "--json").json().getAsJsonArray("namespaces"))
        .isEmpty();
  }

  // ---- feature

  @ParameterizedTest
  @ValueSource(strings = {"", "list"})
  void featuresAreListed(String action) {
    Cli.Result result =
        action.isEmpty() ? Cli.run("feature", "sim:") : Cli.run("feature", "sim:", action);

    assertThat(result.succeeded().out())
        .contains("01h Arbitration: ")
        .contains("06h Volatile Write Cache: 0x00000001")
        .contains("  WCE  1  Volatile Write Cache Enable")
        .doesNotContain("Host Memory Buffer");
  }

  @Test
  void featuresAsJson() {
    JsonArray features =
        Cli.run("feature", "sim:", "--json").succeeded().json().getAsJsonArray("features");

    assertThat(features)
        .map(f -> f.getAsJsonObject().get("id").getAsInt())
        .contains(1, 2, 4, 5, 6, 7)
        .isSorted();
  }

  @ParameterizedTest
  @CsvSource({"6", "0x06", "volatile-write-cache", "Volatile-Write-Cache"})
  void oneFeatureByNumberOrName(String name) {
    JsonObject json = Cli.run("feature", "sim:", "get", name, "--json").succeeded().json();

    assertThat(json.get("name").getAsString()).isEqualTo("Volatile Write Cache");
    assertThat(json.get("value").getAsLong()).isOne();
    assertThat(number(json.getAsJsonObject("fields"), "WCE")).isOne();
  }

  @Test
  void aFeatureCanBeSet() {
    JsonObject json =
        Cli.run("feature", "sim:", "set", "volatile-write-cache", 0, "--allow-write", "--json")
            .succeeded()
            .json();
    assertThat(json.get("value").getAsLong()).isZero();
  }

  @Test
  void aFeatureWithDataCanBeSet() {
    String out =
        Cli.run(
                "feature",
                "sim:",
                "set",
                "host-behavior-support",
                0,
                "--data",
                "01" + "00".repeat(511),
                "--allow-write")
            .succeeded()
            .out();
    assertThat(out).contains("data  01 and 511 zero bytes");
    Cli.run("feature", "sim:", "set", "host-behavior-support", 0, "--data", "0x1", "--allow-write")
        .refused("0x1");
  }

  @Test
  void otherValuesOfAFeature() {
    assertThat(Cli.run("feature", "sim:", "get", 6, "--select", "supported").succeeded().out())
        .containsPattern("\n  CHANGEABLE +1 ");
    assertThat(Cli.run("feature", "sim:", "get", 6, "--select", "default").succeeded().out())
        .contains("0x00000001");
  }

  @Test
  void aFeatureTheControllerDoesNotHaveFails() {
    Cli.run("feature", "sim:", "get", "host-memory-buffer")
        .failed(ExitCode.FAILURE, "Invalid Field");
    Cli.run("feature", "sim:", "set", "write-atomicity-normal", 1, "--allow-write")
        .failed(ExitCode.FAILURE, "Feature Not Changeable");
  }

  /** No word of Java's in what is said of files that cannot be used. */
  @Test
  void messagesArePlain(@TempDir Path folder) throws IOException {
    Path text = Files.writeString(folder.resolve("a.json"), "{\"kinds\": {x");
    Path ranges = Files.writeString(folder.resolve("b.json"), "[[1, 2], [3, x]]");
    Path cut = Files.writeString(folder.resolve("c.json"), "[[1, 2");
    Path header = folder.resolve("m.safetensors");
    byte[] json = "{\"a\": nonsense}".getBytes(StandardCharsets.UTF_8);
    ByteBuffer file = ByteBuffer.allocate(8 + json.length).order(ByteOrder.LITTLE_ENDIAN);
    Files.write(header, file.putLong(json.length).put(json).array());
    for (Cli.Result result :
        List.of(
            Cli.run("ls", folder),
            Cli.run("plan", "--size", "1M", "--kinds", text, "--read", "a:0"),
            Cli.run("plan", "--size", "1M", "--ranges", ranges),
            Cli.run("plan", "--size", "1M", "--ranges", cut),
            Cli.run("inspect", header, "--accelerator", "cpu"),
            Cli.run("load", header, "--verify=" + text, "--accelerator", "cpu"))) {
      assertThat(result.code()).isNotZero();
      assertThat(result.err())
          .hasLineCount(1)
          .doesNotContain("java.", "Exception", "JsonReader", "github.com", "https://");
    }
    assertThat(Cli.run("ls", folder).err()).contains("is a folder, not an image");
  }

  @Test
  void oneTensorIsOne(@TempDir Path folder) throws IOException {
    byte[] json =
        "{\"blk.0.w\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}}"
            .getBytes(StandardCharsets.UTF_8);
    ByteBuffer file = ByteBuffer.allocate(9 + json.length).order(ByteOrder.LITTLE_ENDIAN);
    Path model = folder.resolve("m.safetensors");
    Files.write(model, file.putLong(json.length).put(json).array());
    for (String command : List.of("inspect", "load")) {
      String layers = command.equals("inspect") ? "--layers" : "--json";
      assertThat(Cli.run(command, model, "--accelerator", "cpu").succeeded().out())
          .contains(command.equals("inspect") ? "1 tensor," : "0 of 1 tensor")
          .doesNotContain("1 tensors");
      assertThat(Cli.run(command, model, "--accelerator", "cpu", layers).succeeded().out())
          .doesNotContain("1 tensors");
    }
  }
}
