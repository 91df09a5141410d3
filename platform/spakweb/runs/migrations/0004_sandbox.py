from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_other_hosts")]

    operations = [
        migrations.AddField("run", "sandbox", models.CharField(blank=True, max_length=12)),
    ]
