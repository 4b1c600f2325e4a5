package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The text form of fault rules. */
class FaultSyntaxTest {
  private static FaultRule one(String text) {
    List<FaultRule> rules = FaultSyntax.parse(text);
    assertThat(rules).hasSize(1);
    return rules.getFirst();
  }

  @Test
  void aRuleWithEverything() {
    FaultRule rule =
        one(
            "status=media/unrecovered-read dnr more on read|write lba=100..0xC8 nsid=1 qid=2"
                + " after=2 every=3 count=5 p=0.25 dw12=0x3/0xFF");

    assertThat(rule.action()).isEqualTo(FaultRule.Action.STATUS);
    assertThat(rule.status()).isEqualTo(StatusCode.UNRECOVERED_READ_ERROR.dnr() | Status.MORE);
    assertThat(rule.executes()).isFalse();
    assertThat(rule.after()).isEqualTo(2);
    assertThat(rule.every()).isEqualTo(3);
    assertThat(rule.count()).isEqualTo(5);
    assertThat(rule.probability()).isEqualTo(0.25);
    FaultMatch match = rule.match();
    assertThat(match.firstLba()).isEqualTo(100);
    assertThat(match.lastLba()).isEqualTo(200);
    assertThat(match.nsid()).isEqualTo(1);
    assertThat(match.queue()).isEqualTo(2);
    assertThat(match.admin().isEmpty()).isTrue();
    assertThat(match.io().stream().toArray()).containsExactly(IoOpcode.WRITE, IoOpcode.READ);
    assertThat(match.pattern(12)).isEqualTo(3);
    assertThat(match.mask(12)).isEqualTo(0xFF);
  }

  @Test
  void linesSemicolonsAndComments() {
    assertThat(FaultSyntax.parse("drop on read ; duplicate\n\n# nothing\n  cfs on enable # why\n;"))
        .extracting(FaultRule::action)
        .containsExactly(FaultRule.Action.DROP, FaultRule.Action.DUPLICATE, FaultRule.Action.CFS);
  }

  @ParameterizedTest
  @CsvSource({
    "delay=2ms, 2000000",
    "late=1s, 1000000000",
    "early=20us, 20000",
    "stall=5us, 5000",
    "stall, 0",
    "torn, 1000",
    "torn=7ns, 7"
  })
  void durations(String text, long nanos) {
    assertThat(one(text).nanos()).isEqualTo(nanos);
  }

  @ParameterizedTest
  @CsvSource({"wrong-cid, 1", "wrong-cid=0x8000, 32768", "corrupt=9, 9", "sqhd-bad, 65535"})
  void amounts(String text, int amount) {
    assertThat(one(text).amount()).isEqualTo(amount);
  }

  @ParameterizedTest
  @CsvSource({
    "write-fault, 2/80",
    "media/write-fault, 2/80",
    "generic/lba-out-of-range, 0/80",
    "command/invalid-format, 1/0a",
    "path/aborted-by-host, 3/71",
    "internal, 0/06",
    "7/ff, 7/ff",
    "1/8, 1/08"
  })
  void statuses(String name, String expected) {
    String[] parts = expected.split("/");
    int status = Status.of(Integer.parseInt(parts[0]), Integer.parseInt(parts[1], 16));
    assertThat(one("status=" + name).status()).isEqualTo(status);
  }

  @ParameterizedTest
  @EnumSource(StatusCode.class)
  void everyStatusHasAName(StatusCode code) {
    if (code != StatusCode.SUCCESS) {
      String name = code.name().toLowerCase(java.util.Locale.ROOT).replace('_', '-');
      assertThat(FaultSyntax.status(FaultSyntax.TYPES.get(code.sct()) + "/" + name))
          .isEqualTo(code.status());
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "explode",
        "drop=5",
        "delay",
        "late",
        "early",
        "status",
        "status=success",
        "status=8/00",
        "status=0/123",
        "status=command/write-fault",
        "delay=5 parsecs",
        "corrupt=70000",
        "drop on",
        "drop on teapot",
        "drop on admin:256",
        "drop sometimes",
        "drop lba=",
        "drop lba=5..4",
        "drop lba=1..",
        "drop qid=65536",
        "drop nth=0",
        "drop every=0",
        "drop count=0",
        "drop p=2",
        "drop p=-1",
        "drop p=NaN",
        "drop dw16=1",
        "drop dw1=0x100000000",
        "drop on enable",
        "ready-stuck on shutdown",
        "duplicate on register",
        "drop colour=red",
      })
  void whatIsWrongIsNamedWithItsLine(String text) {
    assertThatThrownBy(() -> FaultSyntax.parse("# a comment\n" + text))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("fault line 2 '" + text + "'")
        .hasMessageContaining("docs/faults.md");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "status=2/81 dnr skip on io:2 qid=1 nsid=7 lba=5..6 dw13=0x1/0x3 after=3 every=2 count=9"
            + " p=0.5",
        "drop skip",
        "drop execute on admin",
        "late=5ns execute on admin|io:1",
        "early=7ns execute on io:2",
        "stall=0ns execute",
        "corrupt=3 execute on io:1|io:2",
        "gone execute on register after=100",
        "ready-stuck execute on disable",
        "sqhd-bad=7 execute p=0.00001"
      })
  void printingIsReadBack(String text) {
    String printed = one(text).toString();
    assertThat(one(printed)).hasToString(printed);
    assertThat(printed).isEqualTo(text);
  }

  @Test
  void theExamplesInTheDocumentationAreValid() throws IOException {
    Path page = Path.of("docs/faults.md");
    Path fromModule = Path.of("../docs/faults.md");
    String text = Files.readString(Files.exists(page) ? page : fromModule);
    String examples = text.substring(text.indexOf("## Examples")).replaceFirst("## Examples", "");

    assertThat(FaultSyntax.parse(examples)).hasSize(11);
    for (FaultRule.Action action : FaultRule.Action.values()) {
      String name = action.name().toLowerCase(java.util.Locale.ROOT).replace('_', '-');
      assertThat(text).contains("| `" + name);
    }
    FaultOpcodes.ADMIN.keySet().forEach(name -> assertThat(text).contains("`" + name + "`"));
    FaultOpcodes.IO.keySet().forEach(name -> assertThat(text).contains("`" + name + "`"));
  }
}
