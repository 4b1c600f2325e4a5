package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.FreeMemory;
import io.gpunvme.nvme.spec.Vs;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Device options: what they mean, and that a wrong one is named. */
class ConfigParseTest {
  @Test
  void nothingMeansTheDefaults() {
    SimConfig config = SimConfig.parse("");

    assertThat(config).isEqualTo(SimConfig.defaults());
    assertThat(config.namespaces()).containsExactly(NamespaceConfig.ram(64L << 20, 512));
    assertThat(config.mdts()).isEqualTo(7);
    assertThat(config.mqes()).isEqualTo(1023);
    assertThat(config.ioQueues()).isEqualTo(64);
    assertThat(config.dstrd()).isZero();
    assertThat(config.to()).isEqualTo(2);
    assertThat(config.version()).isEqualTo(Vs.V1_4);
    assertThat(config.latencyNanos()).isEqualTo(50_000);
    assertThat(config.workers()).isEqualTo(1);
    assertThat(config.outOfOrder()).isFalse();
    assertThat(config.strict()).isTrue();
    assertThat(config.volatileWriteCache()).isTrue();
    assertThat(config.sgl()).isTrue();
    assertThat(config.cmbBytes()).isZero();
    assertThat(config.hmbPreferred()).isZero();
  }

  @Test
  void everyControllerKeySetsItsValue() {
    SimConfig c =
        SimConfig.parse(
            "nn=7,mdts=0,mqes=63,queues=4,vectors=5,dstrd=2,to=20,mpsmax=1,version=2.0,ready=5ms,"
                + "shutdown=7us,latency=1.5us,workers=3,shuffle=on,strict=off,vwc=no,sgl=false,"
                + "dbbuf=0,cqr=off,nssr=off,nsmgmt=yes,kas=true,cmb=1MiB,hmpre=64KiB,hmmin=8KiB,"
                + "addressbits=48,aerl=1,acl=2,elpe=9,serial=S1,model=A model,firmware=F,seed=0x10,"
                + "faults=drop on read;cfs on enable");

    assertThat(c.maxNamespaces()).isEqualTo(7);
    assertThat(c.maxTransfer()).isZero();
    assertThat(c.mdts()).isZero();
    assertThat(c.mqes()).isEqualTo(63);
    assertThat(c.ioQueues()).isEqualTo(4);
    assertThat(c.vectors()).isEqualTo(5);
    assertThat(c.dstrd()).isEqualTo(2);
    assertThat(c.to()).isEqualTo(20);
    assertThat(c.mpsMax()).isEqualTo(1);
    assertThat(c.version()).isEqualTo(Vs.V2_0);
    assertThat(c.readyNanos()).isEqualTo(5_000_000);
    assertThat(c.shutdownNanos()).isEqualTo(7_000);
    assertThat(c.latencyNanos()).isEqualTo(1_500);
    assertThat(c.workers()).isEqualTo(3);
    assertThat(c.outOfOrder()).isTrue();
    assertThat(c.strict()).isFalse();
    assertThat(c.volatileWriteCache()).isFalse();
    assertThat(c.sgl()).isFalse();
    assertThat(c.dbbuf()).isFalse();
    assertThat(c.contiguousQueues()).isFalse();
    assertThat(c.subsystemReset()).isFalse();
    assertThat(c.namespaceManagement()).isTrue();
    assertThat(c.keepAlive()).isTrue();
    assertThat(c.cmbBytes()).isEqualTo(1 << 20);
    assertThat(c.hmbPreferred()).isEqualTo(16);
    assertThat(c.hmbMinimum()).isEqualTo(2);
    assertThat(c.addressBits()).isEqualTo(48);
    assertThat(c.aerl()).isEqualTo(1);
    assertThat(c.acl()).isEqualTo(2);
    assertThat(c.elpe()).isEqualTo(9);
    assertThat(c.serial()).isEqualTo("S1");
    assertThat(c.model()).isEqualTo("A model");
    assertThat(c.firmware()).isEqualTo("F");
    assertThat(c.seed()).isEqualTo(16);
    assertThat(c.faults())
        .extracting(FaultRule::action)
        .containsExactly(FaultRule.Action.DROP, FaultRule.Action.CFS);
  }

  @Test
  void namespacesAreNumbered() {
    SimConfig c =
        SimConfig.parse(
            "size=1MiB,lba=4096,ns2.media=null,ns2.size=2G,ns3.size=8KiB,ns3.readonly=on");

    assertThat(c.namespaces())
        .containsExactly(
            NamespaceConfig.ram(1 << 20, 4096),
            NamespaceConfig.discarding(2L << 30, 512),
            NamespaceConfig.ram(8192, 512).asReadOnly());
    assertThat(c.maxNamespaces()).isEqualTo(3);
  }

  @Test
  void aFileMayHaveACommaInItsName() {
    SimConfig c = SimConfig.parse("file=/tmp/a\\,b\\\\c,size=4KiB");

    assertThat(c.namespaces())
        .containsExactly(NamespaceConfig.file(Path.of("/tmp/a,b\\c"), 4096, 512));
  }

  @Test
  void faultsMayComeFromAFile(@TempDir Path folder) throws Exception {
    Path rules = folder.resolve("rules");
    Files.writeString(rules, "# two rules\ndrop on read nth=3\n\ngone after=9 # later\n");

    assertThat(SimConfig.parse("faults=@" + rules).faults()).hasSize(2);
    assertThatThrownBy(() -> SimConfig.parse("faults=@" + folder + "/none"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("/none: no such file or folder");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "sise=1|sise",
        "size|size",
        "=5|=5",
        "size=1KiB,size=2KiB|size= is given twice",
        "size=1KiB,ns1.size=2KiB|given twice",
        "seed=1,seed=1|seed= is given twice",
        "size=12parsecs|size=12parsecs",
        "size=-1|size=-1",
        "size=99999999999TiB|size=",
        "size=1000|lba=512",
        "lba=513|lba=513",
        "lba=256|lba=256",
        "lba=128KiB|lba=131072",
        "size=0|size=0",
        "media=tape|media=tape",
        "media=file|media=file",
        "media=ram,file=/tmp/x|media=file",
        "media=mapped|media=file or mapped",
        "media=null,file=/tmp/x|media=file or mapped",
        "ns3.size=1KiB|ns2",
        "nn=2,ns2.size=1KiB,nn=1|nn= is given twice",
        "nn=0|nn=0 is not a whole number from 1",
        "size=1KiB,,lba=512|is not key=value",
        "ns2.size=1KiB,nn=1|nn=1",
        "nn=1025|nn=1025",
        "mdts=4096|mdts=4096",
        "mdts=12288|mdts=12288",
        "mqes=0|mqes=0",
        "mqes=65536|mqes=65536",
        "queues=0|queues=0",
        "dstrd=16|dstrd=16",
        "to=0|to=0",
        "to=256|to=256",
        "version=3|version=3",
        "latency=5 parsec|latency=5 parsec",
        "strict=maybe|strict=maybe",
        "workers=x|workers=x",
        "cmb=100|cmb=100",
        "hmpre=5|hmpre=5",
        "hmmin=4KiB|hmmin=4096 is above hmpre=0 (bytes)",
        "serial=|serial=",
        "serial=123456789012345678901|serial=",
        "firmware=Grün|firmware=",
        "readonly=perhaps|readonly=perhaps",
        "addressbits=31|addressbits=31",
        "faults=explode|explode",
        "faults=@|faults=@",
      })
  void aWrongOptionIsNamed(String text, String named) {
    assertThatThrownBy(() -> SimConfig.parse(text))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(named);
  }

  @ParameterizedTest
  @ValueSource(strings = {"size", "lba", "file", "mdts", "mqes", "latency", "faults", "seed"})
  void everyKeyIsExplained(String key) {
    assertThat(SimConfigParser.keys()).containsKey(key);
    assertThat(SimConfigParser.keys().get(key)).isNotBlank();
  }

  @Test
  void aControllerMayHaveNoNamespaces() {
    SimConfig c = SimConfig.builder().noNamespaces().maxNamespaces(4).build();

    assertThat(c.namespaces()).isEmpty();
    assertThat(c.maxNamespaces()).isEqualTo(4);
  }

  @Test
  void aPathThatIsNoneIsNamed() {
    assertThatThrownBy(() -> SimConfig.parse("file=/tmp/\0"))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("file=");
  }

  @Test
  void memoryThatNoMachineLikeThisHasIsRefused() {
    long most = FreeMemory.here().most();
    long size = (most / 4096 + 1) * 4096;
    SimConfig config = SimConfig.builder().namespace(NamespaceConfig.ram(size, 4096)).build();
    assertThatThrownBy(() -> SimulatedController.create(config))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("namespace 1 of " + size + " bytes")
        .hasMessageContaining("have " + most);
  }
}
