package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.nvme.spec.FeatureId;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * What our commands decode is what nvme-cli decodes, field by field, for the same controller. The
 * folder that {@code gpunvme.nvme-cli} names has nvme-cli's output of a moment before.
 */
@Tag("qemu")
class NvmeCliComparisonTest {
  private static final String DEVICE = System.getProperty("gpunvme.device", "");
  private static final String FOLDER = System.getProperty("gpunvme.nvme-cli", "");

  /** nvme-cli's names in the SMART log, in the order of the log's bytes, and ours. */
  private static final Map<String, String> SMART =
      Map.ofEntries(
          Map.entry("critical_warning", "CRITICAL_WARNING"),
          Map.entry("temperature", "COMPOSITE_TEMPERATURE"),
          Map.entry("avail_spare", "AVAILABLE_SPARE"),
          Map.entry("spare_thresh", "AVAILABLE_SPARE_THRESHOLD"),
          Map.entry("percent_used", "PERCENTAGE_USED"),
          Map.entry("endurance_grp_critical_warning_summary", "ENDURANCE_GROUP_WARNING"),
          Map.entry("data_units_read", "DATA_UNITS_READ"),
          Map.entry("data_units_written", "DATA_UNITS_WRITTEN"),
          Map.entry("host_read_commands", "HOST_READ_COMMANDS"),
          Map.entry("host_write_commands", "HOST_WRITE_COMMANDS"),
          Map.entry("controller_busy_time", "CONTROLLER_BUSY_TIME"),
          Map.entry("power_cycles", "POWER_CYCLES"),
          Map.entry("power_on_hours", "POWER_ON_HOURS"),
          Map.entry("unsafe_shutdowns", "UNSAFE_SHUTDOWNS"),
          Map.entry("media_errors", "MEDIA_ERRORS"),
          Map.entry("num_err_log_entries", "ERROR_LOG_ENTRIES"),
          Map.entry("warning_temp_time", "WARNING_TEMPERATURE_TIME"),
          Map.entry("critical_comp_time", "CRITICAL_TEMPERATURE_TIME"),
          Map.entry("thm_temp1_trans_count", "THERMAL_TRANSITIONS_1"),
          Map.entry("thm_temp2_trans_count", "THERMAL_TRANSITIONS_2"),
          Map.entry("thm_temp1_total_time", "THERMAL_TIME_1"),
          Map.entry("thm_temp2_total_time", "THERMAL_TIME_2"));

  /** What the reset between the two programs puts back, and what follows from their own queues. */
  private static final Set<String> REGISTERS_THAT_DIFFER =
      Set.of("CC", "AQA", "ASQ", "ACQ", "CMBMSC", "INTMS", "INTMC");

  @BeforeEach
  void needsBoth() {
    assumeTrue(
        !DEVICE.isEmpty() && !FOLDER.isEmpty(),
        "no output of nvme-cli: none is named by -Dgpunvme.nvme-cli=FOLDER");
  }

  private static JsonObject theirs(String file) throws IOException {
    return JsonParser.parseString(Files.readString(Path.of(FOLDER, file))).getAsJsonObject();
  }

  private static JsonObject ours(Object... command) {
    return Cli.run(command).succeeded().json();
  }

  /** A number or text in one form: decimal, or what is left without blanks and dashes. */
  private static String plain(JsonElement value) {
    String text = value.getAsString().strip().replace("-", "");
    return text.matches("0x\\p{XDigit}+") ? new BigInteger(text.substring(2), 16).toString() : text;
  }

  /** Compares all of their plain fields; the names say which of ours has each. */
  private static void compare(JsonObject theirs, JsonObject ours, Map<String, String> names) {
    Map<String, String> expected = new TreeMap<>();
    Map<String, String> found = new TreeMap<>();
    for (String key : theirs.keySet()) {
      if (theirs.get(key).isJsonPrimitive()) {
        String name = names.getOrDefault(key, key.toUpperCase(Locale.ROOT));
        expected.put(name, plain(theirs.get(key)));
        found.put(name, ours.has(name) ? value(ours, name) : "missing");
      }
    }
    assertThat(expected).hasSizeGreaterThan(5);
    assertThat(found).isEqualTo(expected);
  }

  private static String value(JsonObject fields, String name) {
    return plain(fields.getAsJsonObject(name).get("value"));
  }

  @Test
  void identifyController() throws IOException {
    JsonObject theirs = theirs("id-ctrl");
    // These belong to NVMe over Fabrics; the last is a list.
    for (String other : List.of("ioccsz", "iorcsz", "icdoff", "fcatt", "msdbd", "ofcs", "psds")) {
      theirs.remove(other);
    }
    compare(theirs, ours("identify", DEVICE, "--json").getAsJsonObject("controller"), Map.of());
  }

  @Test
  void identifyNamespaces() throws IOException {
    JsonArray ours = ours("identify", DEVICE, "--json").getAsJsonArray("namespaces");
    assertThat(ours).hasSize(2);
    for (int i = 0; i < 2; i++) {
      JsonObject theirs = theirs("id-ns-" + (i + 1));
      JsonObject fields = ours.get(i).getAsJsonObject().getAsJsonObject("fields");
      compare(theirs, fields, Map.of());
      JsonArray formats = theirs.getAsJsonArray("lbafs");
      assertThat(formats).isNotEmpty();
      for (int f = 0; f < formats.size(); f++) {
        JsonObject format = formats.get(f).getAsJsonObject();
        assertThat(fields.getAsJsonObject("LBAF" + f).get("value").getAsString())
            .startsWith(
                "MS %s LBADS %s RP %s"
                    .formatted(
                        format.get("ms").getAsString(),
                        format.get("ds").getAsString(),
                        format.get("rp").getAsString()));
      }
    }
  }

  @Test
  void healthLog() throws IOException {
    compare(
        theirs("smart"), ours("log", DEVICE, "smart", "--json").getAsJsonObject("fields"), SMART);
  }

  @Test
  void errorLogIsEmpty() throws IOException {
    JsonArray theirs = theirs("error").getAsJsonArray("errors");
    assertThat(theirs).hasSize(1);
    assertThat(theirs.get(0).getAsJsonObject().get("error_count").getAsInt()).isZero();
    String ours = Cli.run("log", DEVICE, "error", "--json").succeeded().out();
    assertThat(ours).doesNotContain("ERROR_COUNT");
  }

  @Test
  void firmwareLog() throws IOException {
    JsonObject theirs = theirs("firmware");
    JsonObject slots = theirs.entrySet().iterator().next().getValue().getAsJsonObject();
    JsonObject ours = ours("log", DEVICE, "firmware", "--json").getAsJsonObject("fields");
    assertThat(value(ours, "AFI")).isEqualTo(slots.get("Active Firmware Slot (afi)").getAsString());
    String revision = slots.get("Firmware Rev Slot 1").getAsString();
    assertThat(revision).contains("(" + value(ours, "FRS1"));
  }

  @Test
  void registers() throws IOException {
    JsonObject theirs = theirs("regs");
    JsonObject ours = ours("regs", DEVICE, "--json").getAsJsonObject("registers");
    Map<String, String> expected = new TreeMap<>();
    Map<String, String> found = new TreeMap<>();
    for (String key : theirs.keySet()) {
      String name = key.toUpperCase(Locale.ROOT);
      if (ours.has(name) && !REGISTERS_THAT_DIFFER.contains(name)) {
        expected.put(name, plain(theirs.get(key)));
        found.put(name, value(ours, name));
      }
    }
    assertThat(expected).containsKeys("CAP", "VS", "CSTS", "CMBLOC", "CMBSZ", "PMRCAP");
    assertThat(found).isEqualTo(expected);
  }

  @Test
  void features() throws IOException {
    JsonArray ours = ours("feature", DEVICE, "--json").getAsJsonArray("features");
    Pattern line = Pattern.compile("Current value:(?:0x)?(?<value>\\p{XDigit}+)");
    int compared = 0;
    for (JsonElement element : ours) {
      JsonObject feature = element.getAsJsonObject();
      int id = feature.get("id").getAsInt();
      Path file = Path.of(FOLDER, "feature-" + id);
      Matcher m = line.matcher(Files.exists(file) ? Files.readString(file) : "");
      // Which events are reported is each program's wish.
      if (m.find() && id != FeatureId.ASYNC_EVENT_CONFIG) {
        assertThat(feature.get("value").getAsLong())
            .as("feature %d", id)
            .isEqualTo(Long.parseLong(m.group("value"), 16));
        compared++;
      }
    }
    assertThat(compared).isGreaterThanOrEqualTo(8);
  }
}
