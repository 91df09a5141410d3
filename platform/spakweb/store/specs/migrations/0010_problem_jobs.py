"""How often a check was sent is counted by its job, which the next sweep finds."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("specs", "0001_squashed_0009_widening")]

    operations = [migrations.RemoveField(model_name="problemfile", name="sent")]
