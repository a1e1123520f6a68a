import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.criteria.DistinctLDiversity;
import org.deidentifier.arx.criteria.EqualDistanceTCloseness;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.metric.Metric;
import org.deidentifier.arx.metric.Metric.AggregateFunction;

/**
 * Calls ARX for bench/arx.py: FOLDER OUT. Each line of the input is a case,
 * COLUMNS:SECRET:K:LIMIT:LOSS:MODEL with COLUMNS joined by commas and MODEL one of none, l3, t0.2.
 * It calls ARX three times for it, prints the levels, and writes the rows to OUT/released.csv,
 * starred where they are suppressed. An empty line calls ARX for the last case once more, and prints
 * the CPU seconds of this thread in that call: without compiling and garbage collection, which are
 * other threads'.
 */
public class Arx {
    public static void main(String[] args) throws Exception {
        Data data = null;
        ARXConfiguration setting = null;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.isEmpty()) {
                System.out.println(spent(data, setting));
                continue;
            }
            String[] part = line.split(":");
            String[] columns = part[0].split(",");
            data = Data.create(Path.of(args[0], "adult.csv").toFile(), StandardCharsets.UTF_8, ';');
            for (int j = 0; j < data.getHandle().getNumColumns(); j++) {
                data.getDefinition().setAttributeType(data.getHandle().getAttributeName(j), AttributeType.INSENSITIVE_ATTRIBUTE);
            }
            for (String column : columns) {
                String file = "adult_hierarchy_" + column + ".csv";
                data.getDefinition().setAttributeType(column, Hierarchy.create(Path.of(args[0], file).toFile(), StandardCharsets.UTF_8, ';'));
            }
            setting = ARXConfiguration.create();
            setting.addPrivacyModel(new KAnonymity(Integer.parseInt(part[2])));
            setting.setSuppressionLimit(Double.parseDouble(part[3]));
            setting.setQualityModel(part[4].equals("granularity")
                ? Metric.createLossMetric(0.5, AggregateFunction.ARITHMETIC_MEAN)
                : Metric.createDiscernabilityMetric(false));
            if (!part[5].equals("none")) {
                data.getDefinition().setAttributeType(part[1], AttributeType.SENSITIVE_ATTRIBUTE);
                setting.addPrivacyModel(part[5].equals("l3")
                    ? new DistinctLDiversity(part[1], 3)
                    : new EqualDistanceTCloseness(part[1], 0.2));
            }
            spent(data, setting);
            spent(data, setting);
            data.getHandle().release();
            ARXResult result = new ARXAnonymizer().anonymize(data, setting);
            StringBuilder levels = new StringBuilder();
            for (String column : columns) {
                levels.append(result.getGlobalOptimum().getGeneralization(column)).append(' ');
            }
            result.getOutput(result.getGlobalOptimum(), false).save(Path.of(args[1], "released.csv").toFile(), ';');
            System.out.println(levels);
        }
    }

    private static double spent(Data data, ARXConfiguration setting) throws Exception {
        data.getHandle().release();
        System.gc();
        long begin = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        new ARXAnonymizer().anonymize(data, setting);
        return (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - begin) / 1e9;
    }
}
