"""A person may ask for an extension of a run's budget."""

from django.db import migrations, models

KINDS = ("answer", "call", "approve", "deny", "take_back", "extend")


class Migration(migrations.Migration):
    dependencies = [("runs", "0025_log_of_runs")]

    operations = [
        migrations.AlterField(
            "command", "kind", models.CharField(choices=[(word, word) for word in KINDS], max_length=12)
        )
    ]
