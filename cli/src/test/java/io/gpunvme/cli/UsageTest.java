package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Help, versions, and everything that is wrong with a command line whatever the command. */
class UsageTest {
  @ParameterizedTest
  @ValueSource(strings = {"--help", "-h", "help"})
  void helpListsEveryCommandAndShowsExamples(String how) {
    Cli.Result result = Cli.run(how).succeeded();

    assertThat(result.out()).startsWith("Usage: gpunvme");
    for (String command :
        new String[] {
          "demo",
          "gather",
          "bench",
          "graph",
          "explain",
          "plan",
          "inspect",
          "plan-model",
          "plan-fleet",
          "load",
          "write-model",
          "weights",
          "ls",
          "stat",
          "extents",
          "cat",
          "cufile",
          "list",
          "topology",
          "doctor",
          "bind",
          "unbind",
          "check-p2p",
          "pin",
          "identify",
          "read",
          "write",
          "regs",
          "log",
          "feature",
          "sim",
          "version",
          "help"
        }) {
      assertThat(result.out()).contains("\n  " + command + " ");
    }
    assertThat(result.out()).contains("Examples:").contains("Exit codes:");
  }

  @Test
  void withoutACommandItPrintsTheHelp() {
    assertThat(Cli.run().succeeded().out()).isEqualTo(Cli.run("--help").out());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "demo",
        "gather",
        "bench",
        "graph",
        "explain",
        "plan",
        "inspect",
        "plan-model",
        "load",
        "write-model",
        "weights",
        "ls",
        "stat",
        "extents",
        "cat",
        "cufile",
        "list",
        "topology",
        "top",
        "doctor",
        "bind",
        "unbind",
        "check-p2p",
        "pin",
        "identify",
        "read",
        "write",
        "regs",
        "log",
        "feature",
        "version",
        "help"
      })
  void everyCommandHasHelpWithExamples(String command) {
    Cli.Result result = Cli.run(command, "--help").succeeded();

    assertThat(result.out())
        .startsWith("Usage: gpunvme " + command)
        .contains("--json")
        .containsPattern("Examples?:\n  gpunvme " + command);
    assertThat(Cli.run("help", command).succeeded().out())
        .isEqualToNormalizingNewlines(result.out());
    assertThat(result.out().lines()).allMatch(line -> line.length() <= 100);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "bench paths",
        "bench report",
        "bench graph",
        "graph generate",
        "graph convert",
        "graph info"
      })
  void everySubcommandHasHelpWithExamples(String command) {
    Cli.Result result = Cli.run((Object[]) (command + " --help").split(" ")).succeeded();

    assertThat(result.out())
        .startsWith("Usage: gpunvme " + command)
        .contains("--json")
        .contains("Examples:\n  gpunvme " + command);
    assertThat(result.out().lines()).allMatch(line -> line.length() <= 100);
  }

  /** {@code help sim} is about addresses. */
  @ParameterizedTest
  @ValueSource(strings = {"sim", "sim serve"})
  void theEmbeddedControllerHasHelpWithExamples(String command) {
    Cli.Result result = Cli.run((Object[]) (command + " --help").split(" ")).succeeded();

    assertThat(result.out())
        .startsWith("Usage: gpunvme " + command)
        .contains("--json")
        .contains("Examples:\n  gpunvme sim serve --socket");
    assertThat(result.out().lines()).allMatch(line -> line.length() <= 100);
  }

  @Test
  void helpOnDevicesListsEveryKey() {
    Cli.Result result = Cli.run("help", "sim").succeeded();

    assertThat(result.out())
        .contains("size=", "lba=", "file=", "mdts=", "latency=", "workers=", "faults=", "seed=");
  }

  @Test
  void helpOnFaultsShowsTheSyntax() {
    assertThat(Cli.run("help", "faults").succeeded().out())
        .contains("ACTION", "drop on write", "docs/faults.md");
  }

  /** Each example rule that help shows is one. */
  @Test
  void theExamplesOfFaultsAreRules() {
    String help = Cli.run("help", "faults").out();
    String[] examples = help.substring(help.indexOf("Examples:")).split("\n");
    assertThat(examples).hasSizeGreaterThan(3);
    for (int i = 1; i < examples.length; i++) {
      String rule = examples[i].strip().split(" {3,}")[0];
      Cli.run("identify", "sim:", "--faults", rule).succeeded();
    }
  }

  @Test
  void helpAsJson() {
    JsonObject json = Cli.run("help", "sim", "--json").succeeded().json();

    assertThat(json.get("topic").getAsString()).isEqualTo("sim");
    assertThat(json.get("text").getAsString()).isEqualTo(Cli.run("help", "sim").out());
  }

  @ParameterizedTest
  @CsvSource({"--help --json,help --json", "read --json -h,help read --json"})
  void helpAsJsonInBothOrders(String option, String command) {
    Cli.Result result = Cli.run((Object[]) option.split(" ")).succeeded();

    assertThat(result.json().get("text").getAsString()).startsWith("Usage: gpunvme");
    assertThat(result.out()).isEqualTo(Cli.run((Object[]) command.split(" ")).out());
  }

  @Test
  void helpOnAnythingElseIsRefused() {
    Cli.run("help", "nonsense").refused("nonsense");
  }

  @ParameterizedTest
  @ValueSource(strings = {"--version", "-V", "version"})
  void versionsStartWithTheProductAndItsNumber(String how) {
    assertThat(Cli.run(how).succeeded().out()).startsWith("gpunvme 0.1");
  }

  @Test
  void versionAsJson() {
    JsonObject json = Cli.run("version", "--json").succeeded().json();

    assertThat(json.get("version").getAsString()).startsWith("0.1");
    assertThat(json.get("java").getAsString()).startsWith("2");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "nonsense                                        | unknown command 'nonsense'",
        "--nonsense                                      | '--nonsense'",
        "identify                                        | DEVICE",
        "identify sim: --nonsense                        | '--nonsense'",
        "identify sim: extra                             | 'extra'",
        "identify nvme:0                                 | no device 'nvme:0'",
        "identify /dev/nvme0n1                           | sim:key=value",
        "identify sim:sise=1                             | sise",
        "identify sim:size=12Q                           | size=12Q",
        "identify sim:size                               | key=value",
        "identify sim:file=/nonexistent/disk.img,size=1M | /nonexistent",
        "identify sim:file=nonexistent.img               | nonexistent.img",
        "identify sim: --nsid 7                          | no active namespace 7",
        "identify sim: --nsid x                          | 'x'",
        "identify sim: --nsid -1                         | from 1 to 4294967294",
        "identify sim: --nsid 0                          | from 1 to 4294967294",
        "identify sim: --nsid 4294967295                 | from 1 to 4294967294",
        "identify sim: --nsid 4294967294                 | no active namespace 4294967294",
        "identify sim:,,                                 | is not key=value",
        "identify sim:nn=0                               | nn=0 is not",
        "identify sim:hmmin=1MiB                         | hmmin=1048576 is above hmpre=0 (bytes)",
        "identify sim:faults=@/nonexistent               | /nonexistent: no such file or folder",
        "identify sim: --faults explode                  | explode",
        "identify sim: --faults @/nonexistent            | /nonexistent",
        "identify sim: --timeout 5                       | '5'",
        "identify sim: --timeout 0s                      | '0s'",
        "identify sim: --max-transfer 6KiB               | 6KiB' is not a multiple of 4KiB",
        "identify sim: --max-transfer 0                  | 0' is not a multiple of 4KiB",
        "identify sim: --max-transfer 2GiB               | to 1GiB",
        "list sim: nonsense                              | no device 'nonsense'",
        "log sim:                                        | PAGE",
        "log sim: nonsense                               | smart, error, firmware, effects,"
            + " changed",
        "read sim: --lba 0 --blocks 1                    | --out",
        "read sim: --blocks 1 --out x                    | --lba",
        "read sim: --lba 0 --out x                       | --blocks",
        "read sim: --lba 0 --out x --blocks 1 --bytes 1  | mutually exclusive",
        "read sim: --lba -1 --out x --blocks 1           | '-1'",
        "read sim: --lba 0x --out x --blocks 1           | '0x'",
        "read sim: --lba 0 --out x --bytes 1.5           | '1.5'",
        "read sim: --lba 0 --out x --blocks 1 --sha256 a | 64 hexadecimal digits",
        "write sim: --lba 0                              | --in",
        "feature sim: nonsense                           | is not one of list, get, set",
        "feature sim: get                                | needs a feature",
        "feature sim: get nonsense                       | no feature 'nonsense'",
        "feature sim: get 0                              | no feature '0'",
        "feature sim: get 256                            | no feature '256'",
        "feature sim: get 6 1                            | only set takes a value",
        "feature sim: set 6 --allow-write                | needs a value",
        "feature sim: set 6 0                            | --allow-write",
        "feature sim: set 6 4294967296 --allow-write     | 32 bits",
        "feature sim: list 6                             | takes no feature",
        "demo /nonexistent/file                          | /nonexistent/file",
        "demo --size 1MiB somefile                       | --size",
        "demo --size 5                                   | sample of 5 bytes",
        "demo --size many                                | 'many'",
        "demo --queues 0                                 | '0'",
        "demo --device nvme:0                            | no device 'nvme:0'",
        "bind                                            | DDDD:BB:DD.F",
        "bind nonsense                                   | is not a PCI address",
        "bind ffff:ff:1f.7                               | no PCI function ffff:ff:1f.7",
        "unbind ffff:ff:1f.7 --dry-run                   | no PCI function ffff:ff:1f.7",
        "pin                                             | DEVICE",
        "pin sim: many                                   | many",
        "pin sim: 0                                      | above 0",
        "check-p2p                                       | DEVICE",
        "plan 0:1                                        | --size",
        "plan --size 1M --source x 0:1                   | mutually exclusive",
        "plan --size 1M                                  | no range",
        "plan --size 1M 5                                | 5' is not offset, length",
        "plan --size 1M 1:2:3:4:5                        | 1:2:3:4:5' is not offset, length",
        "plan --size 1M 1:x                              | x' is not a size",
        "plan --size 1M 1:2:0:2147483648                 | no target 2147483648",
        "plan --size 1M 1M:1                             | goes past the source's end, 1048576",
        "plan --size 1M 0:10:0 100:10:9                  | overlaps in the target",
        "plan --size 1M 0:1 --align 3                    | alignment 3 is not a power of two",
        "plan --size 1M 0:1 --target-align 0             | target alignment 0",
        "plan --size 1M 0:1 --max 512                    | below the alignment, 4096",
        "plan --size 1M 0:1 --gap -1                     | '-1'",
        "plan --size 1M 0:1 --order random               | is not one of offset, given",
        "plan --size 1M 0:1 --stripe 4                   | 4' is not N:UNIT",
        "plan --size 1M 0:1 --stripe 0:4K                | 0' is not a whole number",
        "plan --size 1M 0:1 --stripe 2:1K                | not a multiple of 4096",
        "plan --size 1M 0:1 --stripe 2:0                 | are not possible",
        "plan --size 1M --read a:1                       | go together",
        "plan --size 1M --kinds x                        | no range",
        "plan --size 1M --kinds x 0:1                    | go together",
        "plan --source /nonexistent 0:1                  | /nonexistent: no such file",
        "plan --source / 0:1                             | / is not a regular file",
        "plan --size 1M --ranges /nonexistent            | /nonexistent: no such file",
        "plan --size 1M --ranges /                       | / is a folder",
        "plan --size 1M --kinds /nonexistent --read a:1  | /nonexistent: no such file",
        "plan-model                                      | give a MODEL",
        "plan-model /nonexistent                         | /nonexistent: no such file",
        "plan-model x --gpu-budget many                  | many' is not a size",
        "plan-model x --slots 0                          | '0'",
        "plan-model x --dtype F64                        | is not one of BF16, F16, F32",
        "plan-model x --rate 12                          | 12' is not a rate such as 12GB/s",
        "plan-model x --rate 0GB/s                       | 0GB/s' is not a rate",
        "plan-model x --rate 1GB/s --measure             | mutually exclusive",
        "plan-model x --compute 5                        | '5'",
        "plan-fleet                                      | --model",
        "plan-fleet --model 0                            | 0 bytes of the model: must be from 1",
        "plan-fleet --model -1                           | '-1'",
        "plan-fleet --model NaN                          | NaN' is not a size",
        "plan-fleet --model 9999999TiB                   | 9999999TiB' is not a size",
        "plan-fleet --model 4194304TiB                   | must be from 1 to 1152921504606846976",
        "plan-fleet --model 1TiB --machines 0            | 0 machines: must be from 1 to 1000000",
        "plan-fleet --model 1TiB --machines 99999999999  | 99999999999 machines: must be",
        "plan-fleet --model 1TiB --machines 9999999999999999999 | is not a whole number",
        "plan-fleet --model 1TiB --gpus 65               | 65 GPUs of a machine: must be from 1",
        "plan-fleet --model 1TiB --ssds 0                | 0 SSDs of a machine: must be from 1",
        "plan-fleet --model 1TiB --targets 0             | 0 targets of the pool: must be from 1",
        "plan-fleet --model 1TiB --checkpoint 0          | 0 bytes of a checkpoint",
        "plan-fleet --model 1TiB --lost 1                | 1 lost machines of 1",
        "plan-fleet --model 1TiB --machines 2 --lost 2   | from 0 to 1, since one must be left",
        "plan-fleet --model 1TiB --from disk             | is not one of cache, own, peers, pool",
        "plan-fleet --model 1TiB --placement x           | of machine, gpu, sharded, alone",
        "plan-fleet --model 1TiB --placement alone --from peers | choose placement gpu",
        "plan-fleet --model 900000TiB                    | raise the parameter file",
        "plan-fleet --model 1TiB --set nic               | is not NAME=VALUE",
        "plan-fleet --model 1TiB --set nick=1            | no parameter 'nick' of a fleet",
        "plan-fleet --model 1TiB --set nic=0             | nic=0: must be from 0.001 to 100000"
            + " GB/s",
        "plan-fleet --model 1TiB --set nic=NaN           | nic=NaN: not a number of GB/s",
        "plan-fleet --model 1TiB --set nic=-1            | nic=-1: not a number of GB/s",
        "plan-fleet --model 1TiB --set nic=1e308         | nic=1e308: not a number of GB/s",
        "plan-fleet --model 1TiB --set pin=5s            | pin=5s: not a number of ms",
        "plan-fleet --model 1TiB --machine /nonexistent  | /nonexistent: no such file",
        "plan-fleet --model 1TiB --machine /             | / is a folder",
        "ls                                              | ADDRESS",
        "ls :/a                                          | names no device",
        "ls /nonexistent.img:/a                          | /nonexistent.img: no such file",
        "ls nvme:0:/a                                    | no device 'nvme:0'",
        "ls sim:size=1MiB:/                              | neither a known file system",
        "ls sim:size=1MiB#1:/                            | no partition table",
        "ls sim:size=1MiB#0:/                            | numbered from 1",
        "ls sim:size=1MiB:/ --nsid 2                     | no active namespace 2",
        "stat sim:size=1MiB:/ --journal eat              | is not one of refuse, ignore",
        "extents /nonexistent                            | /nonexistent: no such file",
        "cat sim: --offset -1                            | '-1'",
        "demo --device vfio-user:/nonexistent --size 1M  | --allow-write",
        "demo --device vfio-user:/nonexistent --write 1M --allow-write | there is no socket",
        "demo --device vfio-user:/nonexistent            | there is no socket",
        "demo --device vfio-user:/nonexistent --allow-write | --write OFFSET+SIZE",
        "identify vfio-user:                             | has no socket",
        "identify vfio-user:/nonexistent                 | sim serve --socket /nonexistent",
        "identify vfio-user:/nonexistent,timeout=5       | 500ms or 5s",
        "identify vfio-user:/nonexistent,timeout=0s      | above 0",
        "identify vfio-user:/nonexistent,sise=1          | sise",
        "identify vfio-user:/nonexistent --faults x      | only embedded ones",
        "sim                                             | serve",
        "sim serve                                       | --socket",
        "sim nonsense                                    | nonsense",
        "sim serve --socket /nonexistent/s               | there is no such folder",
        "sim serve --socket /tmp                         | somebody listens there already",
        "sim serve --socket /x --workers 0               | without workers",
        "sim serve --socket /x --namespace x             | is not key=value",
        "sim serve --socket /x --namespace size=1MiB     | either ram=SIZE or file=PATH",
        "sim serve --socket /x --namespace ram=1M,file=x | either ram=SIZE or file=PATH",
        "sim serve --socket /x --namespace ram=1M,size=1 | ram= is the size",
        "sim serve --socket /x --namespace ram=1M,mdts=4 | is not one of ram, file",
        "sim serve --socket /x --namespace ram=many      | many",
        "sim serve --socket /x --namespace file=/none/x  | /none/x",
        "sim serve --socket /x --set sise=1              | sise",
        "sim serve --socket /x --set file=/none/x        | --allow-write",
        "sim serve --socket /x --set size=1MiB           | size= is given twice",
        "sim serve --socket /x --faults explode          | explode",
        "top file:/x                                     | names no controller",
        "top nonsense                                    | no device 'nonsense'",
        "top --interval 0s                               | '0s'",
        "top --count 0                                   | '0'",
        "top --metrics 65536                             | is not [HOST:]PORT",
        "top --metrics a:b                               | is not [HOST:]PORT",
        "top --metrics ::1:80                            | is not [HOST:]PORT",
        "top --metrics 0 --count 1                       | are for rounds",
        "top --metrics no-such-host.invalid:0            | there is no host no-such-host.invalid",
        "top --metrics 192.0.2.1:0                       | cannot listen at 192.0.2.1",
        "bench                                           | WHAT",
        "bench nonsense                                  | is not one of queue, random, stream",
        "bench random --queues 0                         | '0'",
        "bench random --warps 4                          | --warps is for bench queue",
        "bench queue --initiator cpu                     | needs a GPU",
        "bench random --initiator cpu --placement vram   | --placement host only",
        "bench queue --placement vram-data               | host or vram",
      })
  void wrongUsageEndsWithCode2AndOneLine(String line, String what) {
    Cli.Result result = Cli.run((Object[]) line.split(" +"));

    result.refused(what);
    assertThat(result.out()).isEmpty();
  }

  @Test
  void errorsAreAnObjectTooIfJsonWasAskedFor() {
    Cli.Result result = Cli.run("identify", "nvme:0", "--json");
    result.refused("no device 'nvme:0'");

    assertThat(result.json().get("error").getAsString()).contains("no device 'nvme:0'");
    assertThat(result.json().get("exit_code").getAsInt()).isEqualTo(2);
  }

  @Test
  void errorsOfTheParserAreAnObjectToo() {
    Cli.Result result = Cli.run("identify", "sim:", "--json", "--nonsense");

    result.refused("--nonsense");
    assertThat(result.json().get("exit_code").getAsInt()).isEqualTo(2);
  }

  @Test
  void debugPrintsTheStack() {
    Cli.Result result = Cli.run("identify", "sim:size=0", "--debug");

    assertThat(result.code()).isEqualTo(ExitCode.USAGE);
    assertThat(result.err()).contains("InvalidRequestException").contains("\tat ");
  }

  @Test
  void failuresOfADeviceEndWithCode1() {
    Cli.run("identify", "sim:to=1", "--faults", "ready-stuck on enable")
        .failed(ExitCode.FAILURE, "RDY");
    Cli.run("log", "sim:", "smart", "--faults", "status=generic/internal-error on get-log-page")
        .failed(ExitCode.FAILURE, "Internal Error");
  }

  /** The list of commands has one line for each: a whole sentence. */
  @ParameterizedTest
  @ValueSource(strings = {"--help", "bench --help", "weights --help", "sim --help"})
  void everyCommandIsExplainedInOneSentence(String words) {
    List<String> lines =
        Cli.run((Object[]) words.split(" "))
            .succeeded()
            .out()
            .lines()
            .dropWhile(line -> !line.equals("Commands:"))
            .skip(1)
            .takeWhile(line -> !line.isBlank())
            .toList();
    assertThat(lines)
        .isNotEmpty()
        .allSatisfy(line -> assertThat(line).matches("  [a-z0-9-]+ +[A-Z].*[A-Za-z0-9)']\\."));
  }
}
